package xstreamq_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// stopWait is for what takes milliseconds on an idle machine.
const stopWait = 30 * time.Second

// stopConnect makes a client of one of the two kinds that Stop must serve alike: "open" is Open's own, "new" is New with a
// rueidis client of the caller on rueidis's defaults, which has a pool of pipelines and no AlwaysPipelining.
func stopConnect(t *testing.T, kind, url string, cfg xstreamq.Config) *xstreamq.Client {
	t.Helper()
	if kind == "new" {
		return stopNew(t, stopRueidis(t, url), cfg)
	}
	c, err := xstreamq.Open(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func stopNew(t *testing.T, rc rueidis.Client, cfg xstreamq.Config) *xstreamq.Client {
	t.Helper()
	c, err := xstreamq.New(rc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// stopRueidis is a caller's own rueidis client.
func stopRueidis(t *testing.T, url string) rueidis.Client {
	t.Helper()
	opts, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.DisableCache = true
	rc, err := rueidis.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rc.Close)
	return rc
}

var stopKinds = []string{"open", "new"}

func stopQueue(t *testing.T, c *xstreamq.Client, name string) *xstreamq.Queue[string] {
	t.Helper()
	q, err := xstreamq.NewQueue(c, name, xstreamq.WithCodec(xstreamq.Codec[string](xstreamq.String{})))
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func stopSubscribe(t *testing.T, q *xstreamq.Queue[string], h xstreamq.Handler[string], o xstreamq.SubscribeOptions) *xstreamq.Subscription {
	t.Helper()
	sub, err := q.Subscribe("g", h, o)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func stopStart(t *testing.T, c *xstreamq.Client) {
	t.Helper()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func stopPublish(t *testing.T, q *xstreamq.Queue[string], bodies ...string) {
	t.Helper()
	for _, b := range bodies {
		if _, err := q.Publish(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// stopWithin stops a client with a deadline of d from now, and returns how long it took and its error.
func stopWithin(c *xstreamq.Client, d time.Duration) (took time.Duration, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	err = c.Stop(ctx)
	return time.Since(began), err
}

// stopTake receives from a channel, or fails the test.
func stopTake[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(stopWait):
		t.Fatalf("waited %v in vain for %s", stopWait, what)
	}
	panic("unreachable")
}

// stopPending returns how many entries of a consumer group are leased.
func stopPending(t *testing.T, rc rueidis.Client, key, group string) int64 {
	t.Helper()
	reply, err := rc.Do(t.Context(), rc.B().Xpending().Key(key).Group(group).Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	n, err := reply[0].AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// stopSeen is what handlers got, by body.
type stopSeen struct {
	mu   sync.Mutex
	runs map[string][]xstreamq.Delivery
}

func (s *stopSeen) note(m *xstreamq.Message[string]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		s.runs = map[string][]xstreamq.Delivery{}
	}
	s.runs[m.Body] = append(s.runs[m.Body], m.Delivery)
}

func (s *stopSeen) bodies() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.runs)
}

// unspent fails the test for every delivery that had a failure or a lost lease charged to it.
func (s *stopSeen) unspent(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for body, runs := range s.runs {
		for i, d := range runs {
			if d.Retries != 0 || d.LostLeases != 0 || d.Attempt != 1 {
				t.Errorf("delivery %d of %q: %d retries, %d lost leases, attempt %d: a budget was spent",
					i+1, body, d.Retries, d.LostLeases, d.Attempt)
			}
		}
	}
}

func stopNothing(context.Context, *xstreamq.Message[string]) error { return nil }

// stopUntilCancelled is a handler that obeys its context and returns its error.
func stopUntilCancelled(running chan<- string) xstreamq.Handler[string] {
	return func(ctx context.Context, m *xstreamq.Message[string]) error {
		running <- m.Body
		<-ctx.Done()
		return ctx.Err()
	}
}

// stopDrainError returns the *DrainError in an error, or fails the test.
func stopDrainError(t *testing.T, err error) *xstreamq.DrainError {
	t.Helper()
	var d *xstreamq.DrainError
	if !errors.As(err, &d) {
		t.Fatalf("got %v, want a *DrainError", err)
	}
	return d
}

// aloneEnv names the test that this process runs by itself.
const aloneEnv = "XSTREAMQ_TEST_ALONE"

// stopAlone runs each case in a process of its own, all of them at once, so that goleak sees no other test's goroutines. In such
// a process it runs the case.
func stopAlone(t *testing.T, names []string, run func(t *testing.T, name string)) {
	t.Helper()
	if only, here := strings.CutPrefix(os.Getenv(aloneEnv), t.Name()+"/"); here {
		t.Run(only, func(t *testing.T) { run(t, only) })
		return
	}
	t.Parallel()
	url := redistest.URL(t)
	outputs := make([]func() ([]byte, error), len(names))
	for i, name := range names {
		test := t.Name() + "/" + name
		cmd := exec.Command(os.Args[0], "-test.v", "-test.count=1", "-test.timeout=2m",
			"-test.run=^"+regexp.QuoteMeta(t.Name())+"$/^"+regexp.QuoteMeta(name)+"$")
		cmd.Env = append(os.Environ(), aloneEnv+"="+test, "XSTREAMQ_TEST_REDIS_URL="+url)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		outputs[i] = func() ([]byte, error) { err := cmd.Wait(); return out.Bytes(), err }
	}
	for i, name := range names {
		out, err := outputs[i]()
		t.Run(name, func(t *testing.T) {
			if err != nil || !bytes.Contains(out, []byte("--- PASS: "+strings.TrimSuffix(t.Name(), "/"+name))) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// stopLeaks waits for all goroutines to end but those of before and those of a proxy, and returns how long that took. It fails
// the test after limit.
func stopLeaks(t *testing.T, before goleak.Option, limit time.Duration) time.Duration {
	t.Helper()
	ignored := []goleak.Option{before}
	for _, f := range []string{"(*Proxy).accept", "(*link).serve", "(*link).readReplies", "(*link).writeReplies"} {
		ignored = append(ignored, goleak.IgnoreAnyFunction("github.com/xstreamq/xstreamq/internal/redistest."+f))
	}
	began := time.Now()
	for {
		err := goleak.Find(ignored...)
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			t.Errorf("goroutines are left after %v: %v", limit, err)
			return time.Since(began)
		}
	}
}
