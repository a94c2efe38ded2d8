package xstreamq_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// healthSubscribed is a running client with one idle subscription, through a proxy before a server of its own.
func healthSubscribed(t *testing.T, kind string) (*xstreamq.Client, *redistest.Server, *redistest.Proxy, string) {
	t.Helper()
	dir := t.TempDir()
	server := redistest.Start(t, redistest.Options{Dir: dir})
	proxy := redistest.NewProxy(t, server.URL())
	c := stopConnect(t, kind, proxy.URL(), xstreamq.Config{DrainTimeout: time.Second})
	stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	return c, server, proxy, dir
}

// P9: Healthy tells the truth about Redis. It turns false, naming the reason, when Redis cannot be reached or takes no writes,
// and back to nil when that is over; it never takes longer than 3 s or than its context.
func TestHealthySeesWhatIsWrongWithRedis(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want  string
		spoil, heal func(t *testing.T, server *redistest.Server, proxy *redistest.Proxy, dir string)
	}{
		{
			"down", "Redis: ",
			func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, _ string) { s.Kill() },
			func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, _ string) { _ = s.Restart() },
		},
		{
			"paused", "Redis: ",
			func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, _ string) { s.Pause() },
			func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, _ string) { s.Resume() },
		},
		{
			"silent", "Redis: ",
			func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, _ string) { p.BlackHole() },
			func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, _ string) { p.Pass() },
		},
		{
			"silent to new connections", "Redis: ",
			func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, _ string) { p.BlackHole(); p.Cut() },
			func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, _ string) { p.Pass() },
		},
		{"replica", "READONLY", healthRun("REPLICAOF", "127.0.0.1", "1"), healthRun("REPLICAOF", "NO", "ONE")},
		{"full", "OOM", healthRun("CONFIG", "SET", "maxmemory", "1"), healthRun("CONFIG", "SET", "maxmemory", "0")},
		{
			"unable to save", "MISCONF",
			func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, dir string) { healthMisconf(t, s, dir) },
			healthRun("CONFIG", "SET", "save", ""),
		},
		{"forbidden", "NOPERM", healthRun("ACL", "SETUSER", "default", "-xadd"), healthRun("ACL", "SETUSER", "default", "+xadd")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, server, proxy, dir := healthSubscribed(t, "open")
			if err := c.Healthy(t.Context()); err != nil {
				t.Fatalf("an idle client is unhealthy: %v", err)
			}
			tt.spoil(t, server, proxy, dir)
			redistest.WaitFor(t, stopWait, "Healthy to name the reason", func() bool {
				err := healthBriefly(t, c)
				return err != nil && strings.Contains(err.Error(), tt.want)
			})
			began := time.Now()
			if err := c.Healthy(context.Background()); err == nil {
				t.Error("Healthy was nil again while nothing was healed")
			}
			if took := time.Since(began); took > 4500*time.Millisecond {
				t.Errorf("Healthy took %v without a deadline", took)
			}
			tt.heal(t, server, proxy, dir)
			redistest.WaitFor(t, stopWait, "Healthy to be nil again", func() bool { return c.Healthy(t.Context()) == nil })
		})
	}
}

// Healthy keeps its time also while another command holds up everybody with a dial that gets no answer.
func TestHealthyDoesNotWaitForADial(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	c := stopConnect(t, "open", server.URL(), xstreamq.Config{})
	q := stopQueue(t, c, "q")
	server.Kill()
	if err := healthBriefly(t, c); err == nil {
		t.Error("healthy without Redis")
	}
	dialled := standIn(t, server.Addr(), false)
	published := make(chan error, 1)
	go func() {
		_, err := q.Publish(t.Context(), "x")
		published <- err
	}()
	stopTake(t, "a dial", dialled)
	if err := healthBriefly(t, c); err == nil {
		t.Error("healthy while a dial hangs")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := stopTake(t, "Publish", published); err == nil {
		t.Error("Publish succeeded without Redis")
	}
}

// healthBriefly asks with little time.
func healthBriefly(t *testing.T, c *xstreamq.Client) error {
	t.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := c.Healthy(ctx)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Healthy took %v with a context of 500ms", took)
	}
	return err
}

// healthRun returns what runs a command on the server itself.
func healthRun(words ...string) func(t *testing.T, server *redistest.Server, _ *redistest.Proxy, _ string) {
	return func(t *testing.T, server *redistest.Server, _ *redistest.Proxy, _ string) {
		t.Helper()
		rc, err := redistest.Open(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer rc.Close()
		healthCommand(t, rc, words...)
	}
}

// The HTTP handler answers 200 or 503 with the details as JSON. /livez stays 200 through an outage of Redis and a drain: neither is
// cured by a restart.
func TestHealthHandler(t *testing.T) {
	t.Parallel()
	c, server, _, _ := healthSubscribed(t, "open")
	q := stopQueue(t, c, "busy")
	running := make(chan string, 1)
	busy := stopSubscribe(t, q, stopUntilCancelled(running), xstreamq.SubscribeOptions{})
	if err := busy.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	stopPublish(t, q, "x")
	stopTake(t, "a handler", running)

	healthWant(t, c, "/healthz", http.StatusOK, true)
	healthWant(t, c, "/livez", http.StatusOK, true)
	h := healthWant(t, c, "/", http.StatusOK, true)
	if len(h.Subscriptions) != 2 {
		t.Fatalf("%d subscriptions", len(h.Subscriptions))
	}
	for _, s := range h.Subscriptions {
		if !s.Ready || s.Group != "g" || len(s.Loops) == 0 || (s.Running == 1) != (s.Queue == "busy") {
			t.Errorf("subscription: %+v", s)
		}
		for _, l := range s.Loops {
			if l.Name == "" || !l.Fresh || l.Progress.IsZero() || l.Error != "" {
				t.Errorf("loop: %+v", l)
			}
		}
	}

	server.Kill()
	h = healthWant(t, c, "/healthz", http.StatusServiceUnavailable, false)
	if len(h.Problems) == 0 || h.Redis == "" {
		t.Errorf("no reason: %+v", h)
	}
	healthWant(t, c, "/probe/livez", http.StatusOK, true)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, stopWait, "Healthy to be nil again", func() bool { return c.Healthy(t.Context()) == nil })

	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(t.Context()) }()
	redistest.WaitFor(t, stopWait, "unhealthy while draining", func() bool { return c.Healthy(t.Context()) != nil })
	healthWant(t, c, "/livez", http.StatusOK, true)
	h = healthWant(t, c, "/healthz", http.StatusServiceUnavailable, false)
	if !strings.Contains(strings.Join(h.Problems, ";"), "draining") {
		t.Errorf("problems: %q", h.Problems)
	}
	if err := stopTake(t, "Stop", stopped); err != nil {
		t.Error(err)
	}
	healthWant(t, c, "/livez", http.StatusOK, true)
}

// healthWant asks the handler and checks status, type and the field "healthy".
func healthWant(t *testing.T, c *xstreamq.Client, path string, status int, healthy bool) (h xstreamq.Health) {
	t.Helper()
	w := httptest.NewRecorder()
	c.HealthHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	if w.Code != status {
		t.Errorf("%s: status %d, want %d: %s", path, w.Code, status, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: Content-Type %q", path, got)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &h); err != nil {
		t.Fatalf("%s: %v in %s", path, err, w.Body)
	}
	if h.Healthy != healthy {
		t.Errorf("%s: healthy %v, want %v: %s", path, h.Healthy, healthy, w.Body)
	}
	return h
}

// A client is healthy before Start, when it only publishes, and not any more after Stop. A subscription that cannot come up is a
// problem with its name.
func TestHealthyThroughALife(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rc := redistest.Client(t)
	c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: prefix})
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("before Start: %v", err)
	}
	q := stopQueue(t, c, "q")
	stopSubscribe(t, q, stopNothing, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("right after Start: %v", err)
	}
	healthCommand(t, rc, "SET", prefix+"{taken}", "x")
	sub := stopSubscribe(t, stopQueue(t, c, "taken"), stopNothing, xstreamq.SubscribeOptions{})
	if err := c.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), `queue "taken"`) {
		t.Errorf("with a subscription that cannot come up: %v", err)
	}
	healthCommand(t, rc, "DEL", prefix+"{taken}")
	if err := sub.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Errorf("once it is up: %v", err)
	}
	if n, err := rc.Do(t.Context(), rc.B().Exists().Key(prefix+"xstreamq:health").Build()).AsInt64(); err != nil || n != 0 {
		t.Errorf("the health check left a key: %d %v", n, err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("after Stop: %v", err)
	}
}

// Idle queues and busy handlers stay healthy for longer than any loop may be quiet; one loop that cannot do its work turns Healthy
// false, with its name, and /livez stays 200, as it does while Redis is silent; and what healed is healthy again. It lasts as
// long as a loop may be quiet: 15 s.
func TestHealthyOverTime(t *testing.T) {
	t.Parallel()
	rc := redistest.Client(t)
	prefix := redistest.Prefix(t)
	cfg := func(name string) xstreamq.Config { return xstreamq.Config{KeyPrefix: prefix + name + ":"} }

	idle := stopConnect(t, "open", redistest.URL(t), cfg("idle"))
	stopSubscribe(t, stopQueue(t, idle, "q"), stopNothing, xstreamq.SubscribeOptions{})
	stopStart(t, idle)

	busy := stopConnect(t, "open", redistest.URL(t), cfg("busy"))
	q := stopQueue(t, busy, "q")
	running, release := make(chan string, 5), make(chan struct{})
	defer close(release)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		running <- m.Body
		<-release
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 1, Prefetch: 2})
	stopStart(t, busy)
	stopPublish(t, q, "a", "b", "c", "d", "e")
	stopTake(t, "the handler", running)

	stuck := stopConnect(t, "open", redistest.URL(t), cfg("stuck"))
	stopSubscribe(t, stopQueue(t, stuck, "q"), stopNothing, xstreamq.SubscribeOptions{})
	stopStart(t, stuck)
	healthCommand(t, rc, "DEL", prefix+"stuck:{q}.g.retry")
	healthCommand(t, rc, "SET", prefix+"stuck:{q}.g.retry", "x")

	proxy := redistest.NewProxy(t, redistest.URL(t))
	silent := stopConnect(t, "open", proxy.URL(), cfg("silent"))
	q = stopQueue(t, silent, "q")
	stopSubscribe(t, q, func(context.Context, *xstreamq.Message[string]) error {
		proxy.BlackHole()
		running <- "" // its outcome cannot be written
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, silent)
	stopPublish(t, q, "x")
	stopTake(t, "the handler", running)

	var problem string
	redistest.WaitFor(t, 2*stopWait, "a loop that is stuck", func() bool {
		for name, c := range map[string]*xstreamq.Client{"idle": idle, "busy": busy} {
			// On a busy machine the server may once be too late for the check itself.
			if err := c.Healthy(t.Context()); err != nil && !strings.Contains(err.Error(), "Redis: no answer: context deadline exceeded") {
				t.Fatalf("%s: %v", name, err)
			}
		}
		healthWant(t, silent, "/livez", http.StatusOK, true)
		if err := stuck.Healthy(t.Context()); err != nil {
			problem = err.Error()
		}
		return strings.Contains(problem, "retry reader")
	})
	for _, want := range []string{`queue "q", group "g"`, "retry reader", "no progress", "WRONGTYPE"} {
		if !strings.Contains(problem, want) {
			t.Errorf("the problem does not name %s: %s", want, problem)
		}
	}
	healthWant(t, stuck, "/livez", http.StatusOK, true)
	healthWant(t, silent, "/healthz", http.StatusServiceUnavailable, false)
	healthCommand(t, rc, "DEL", prefix+"stuck:{q}.g.retry")
	proxy.Pass()
	redistest.WaitFor(t, stopWait, "Healthy to be nil again", func() bool {
		return stuck.Healthy(t.Context()) == nil && silent.Healthy(t.Context()) == nil
	})
	for name, c := range map[string]*xstreamq.Client{"idle": idle, "busy": busy} {
		if err := c.Healthy(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// healthMisconf makes a server with its own directory unable to save, so that it refuses writes, and PING, with MISCONF.
func healthMisconf(t *testing.T, server *redistest.Server, dir string) {
	t.Helper()
	rc, err := redistest.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	healthCommand(t, rc, "CONFIG", "SET", "save", "3600 1000000")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	healthCommand(t, rc, "BGSAVE")
	redistest.WaitFor(t, stopWait, "MISCONF", func() bool {
		err := rc.Do(t.Context(), rc.B().Arbitrary("PING").Build()).Error()
		return err != nil && strings.HasPrefix(err.Error(), "MISCONF")
	})
}

func healthCommand(t *testing.T, rc rueidis.Client, words ...string) {
	t.Helper()
	if err := rc.Do(t.Context(), rc.B().Arbitrary(words...).Build()).Error(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}
