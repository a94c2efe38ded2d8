package report

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// AskServer adds what a Redis server says of itself. A parameter that the server hides is told as unknown.
func (m *Machine) AskServer(ctx context.Context, o resp.Options) error {
	c, err := resp.Dial(ctx, o)
	if err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	defer c.Close()
	info, err := c.Do("INFO")
	if err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	config := make(map[string]string)
	for _, name := range []string{"appendonly", "appendfsync", "save"} {
		v, err := c.Do("CONFIG", "GET", name)
		var refused resp.ServerError
		if errors.As(err, &refused) {
			continue // hosted servers have no CONFIG
		}
		if err != nil {
			return fmt.Errorf("ask the server for %s: %w", name, err)
		}
		if len(v.Items) == 2 {
			config[name] = v.Items[1].Text
		}
	}
	m.Server(info.Text, config)
	return nil
}

// ServerWatch reads the memory of a Redis server, and how long the streams of a queue and how many the consumers of its
// groups are. It keeps one connection, which it makes anew after a failure. Make it with [NewServerWatch].
type ServerWatch struct {
	options resp.Options
	queue   string
	groups  []string
	conn    *resp.Conn
}

// NewServerWatch watches the queue of that name, whose keys have no prefix, and its groups.
func NewServerWatch(o resp.Options, queue string, groups ...string) *ServerWatch {
	return &ServerWatch{options: o, queue: queue, groups: groups}
}

// Close closes the connection, if there is one. Call it when the sampler has stopped.
func (s *ServerWatch) Close() {
	if s.conn != nil {
		_ = s.conn.Close()
		s.conn = nil
	}
}

// Probe is a [Probe]. A server that does not answer leaves a gap.
func (s *ServerWatch) Probe(ctx context.Context) []Reading {
	if s.conn == nil {
		c, err := resp.Dial(ctx, s.options)
		if err != nil {
			return nil
		}
		s.conn = c
	}
	out, err := s.read()
	if err != nil {
		s.Close()
	}
	return out
}

// read returns what was read until there was an error. What does not exist yet is left out.
func (s *ServerWatch) read() ([]Reading, error) {
	var out []Reading
	info, err := s.ask("INFO", "memory")
	if err != nil {
		return out, err
	}
	if used, err := strconv.ParseFloat(InfoFields(info.Text)["used_memory"], 64); err == nil {
		out = append(out, Reading{Plot: "memory of Redis", Unit: "bytes", Series: "used_memory", V: used})
	}
	stream := "{" + s.queue + "}"
	length, err := s.ask("XLEN", stream)
	if err != nil {
		return out, err
	}
	out = append(out, Reading{Plot: "entries", Unit: "entries", Series: "queue", V: float64(length.Int)})
	for _, g := range s.groups {
		retry := stream + "." + g + ".retry"
		for _, key := range []string{retry, stream + "." + g + ".dlq"} {
			length, err := s.ask("XLEN", key)
			if err != nil {
				return out, err
			}
			out = append(out, Reading{Plot: "entries", Unit: "entries", Series: key[len(stream)+1:], V: float64(length.Int)})
		}
		for _, of := range []struct{ key, group string }{{stream, g}, {retry, g + "-retry"}} {
			consumers, err := s.ask("XINFO", "CONSUMERS", of.key, of.group)
			if err != nil {
				return out, err
			}
			if consumers.Kind == resp.Array {
				out = append(out, Reading{Plot: "consumers", Unit: "consumers", Series: of.group, V: float64(len(consumers.Items))})
			}
		}
	}
	return out, nil
}

// ask returns a refusal as a value: the stream, or its group, is not there yet.
func (s *ServerWatch) ask(args ...string) (resp.Value, error) {
	v, err := s.conn.Do(args...)
	var refused resp.ServerError
	if errors.As(err, &refused) {
		return resp.Value{Kind: resp.Failure, Text: string(refused)}, nil
	}
	return v, err
}

// GaugeProbe reads one value, if there is one.
func GaugeProbe(plot, unit, series string, value func() (v float64, ok bool)) Probe {
	return func(context.Context) []Reading {
		v, ok := value()
		if !ok {
			return nil
		}
		return []Reading{{Plot: plot, Unit: unit, Series: series, V: v}}
	}
}
