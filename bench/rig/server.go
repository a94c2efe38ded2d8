package rig

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// server is a Redis of our own, and a connection to look at it.
type server struct {
	*redistest.Server
	aof    bool
	client rueidis.Client
}

func startServer(aof bool) (*server, error) {
	opts := redistest.Options{}
	if aof {
		opts.AOF = "everysec"
	}
	s, err := redistest.NewServer(opts)
	if err != nil {
		return nil, err
	}
	c, err := redistest.Open(s.URL())
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return &server{s, aof, c}, nil
}

func (s *server) close() {
	s.client.Close()
	_ = s.Close()
}

func (s *server) flush(ctx context.Context) error {
	return s.client.Do(ctx, s.client.B().Flushall().Sync().Build()).Error()
}

func (s *server) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.client.Do(ctx, s.client.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return nil, fmt.Errorf("INFO %s: %w", section, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// cpu is what all threads of the server have used; the children that rewrite an append-only file are not in it.
func (s *server) cpu(ctx context.Context) (time.Duration, error) {
	fields, err := s.info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var total float64
	for _, name := range []string{"used_cpu_sys", "used_cpu_user"} {
		seconds, err := strconv.ParseFloat(fields[name], 64)
		if err != nil {
			return 0, fmt.Errorf("INFO cpu, %s: %w", name, err)
		}
		total += seconds
	}
	return time.Duration(total * float64(time.Second)), nil
}

// count adds up the numbers, or first numbers, that commands return.
func (s *server) count(ctx context.Context, commands [][]string) (int64, error) {
	var total int64
	for _, words := range commands {
		reply, err := s.client.Do(ctx, s.client.B().Arbitrary(words...).Build()).ToMessage()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
		}
		if list, err := reply.ToArray(); err == nil && len(list) > 0 {
			reply = list[0]
		}
		n, err := reply.AsInt64()
		if err != nil {
			return 0, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
		}
		total += n
	}
	return total, nil
}
