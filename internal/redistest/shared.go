package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// urlVariable names the environment variable that takes precedence over every other way to get a server.
const urlVariable = "XSTREAMQ_TEST_REDIS_URL"

// checkTimeout bounds the first contact with a server that was named by the environment.
const checkTimeout = 5 * time.Second

// shared is the server that the tests of this process share.
var shared sharedServer

// sharedServer starts on first use. A failure is remembered: what could not be had once is not tried for every test.
type sharedServer struct {
	mu      sync.Mutex
	started bool
	url     string
	err     error
	close   func() error
}

// URL returns the address of the server that all tests of this process share; the first call starts it. Keep to keys
// under [Prefix], and change nothing on the server that others would notice.
func URL(tb testing.TB) string {
	tb.Helper()
	url, err := shared.get()
	if err != nil {
		tb.Fatal(err)
	}
	return url
}

// Main is the body of TestMain. It runs the tests, stops the shared server, fails when goroutines are left (opts as
// for goleak) and exits.
func Main(m *testing.M, opts ...goleak.Option) {
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	if code == 0 {
		// After a failure the goroutines of the failed test are no news. rueidis leaves one asleep for up to a second after a
		// look at the cluster's slots, and one for 5s that then closes the connections of a node that is gone.
		opts = append(opts, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
			goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
		if err := goleak.Find(opts...); err != nil {
			fmt.Fprintf(os.Stderr, "goroutines are left after the tests: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}

func (s *sharedServer) get() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started {
		s.started = true
		s.url, s.close, s.err = findShared()
	}
	return s.url, s.err
}

func (s *sharedServer) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.close == nil {
		return nil
	}
	return s.close()
}

// findShared tries the ways to get a server in their order. A way that is there but fails is an error, so that a typo
// in the environment does not silently become another server.
func findShared() (url string, stop func() error, err error) {
	if url := os.Getenv(urlVariable); url != "" {
		if err := answers(url); err != nil {
			return "", nil, fmt.Errorf("redistest: the server of %s: %w", urlVariable, err)
		}
		return url, nil, nil
	}
	if _, err := findBinary(); err == nil {
		server, err := NewServer(Options{})
		if err != nil {
			return "", nil, err
		}
		return server.URL(), server.Close, nil
	}
	url, stop, err = runContainer()
	if errors.Is(err, ErrNoDocker) {
		err = fmt.Errorf("redistest: no Redis to test with. Run scripts/redis.sh (as make test does), or install "+
			"redis-server or valkey-server, or start Docker, or set %s=redis://host:port: %w", urlVariable, err)
	}
	return url, stop, err
}

// answers reports why no Redis takes commands at url.
func answers(url string) error {
	client, err := Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); err != nil {
		return fmt.Errorf("PING: %w", err)
	}
	return nil
}
