package xstreamq_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// faultGate is a handler whose messages wait for the gate, and then fail once if their body begins with "fail".
func faultGate(gate <-chan struct{}) xstreamq.Handler[string] {
	return func(ctx context.Context, m *xstreamq.Message[string]) error {
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if strings.HasPrefix(m.Body, "fail") && m.Retries == 0 {
			return errors.New("failed")
		}
		return nil
	}
}

// info returns one line of INFO.
func (r *faultRig) info(section, name string) string {
	r.t.Helper()
	reply := r.do("INFO", section)
	text, err := reply.ToString()
	if err != nil {
		r.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	return value
}

// P5, P9: a server that cannot write its snapshot refuses outcomes. They are written when it can, nothing runs twice, and
// Healthy names the error meanwhile.
func TestServerCannotPersist(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := redistest.Start(t, redistest.Options{Dir: dir, Args: []string{"--save", "1", "1"}})
	rig := newFaultRig(t, server)
	gate := make(chan struct{})
	a, q := rig.worker(xstreamq.SubscribeOptions{VisibilityTimeout: 20 * time.Second, Backoff: faultQuick}, faultGate(gate))
	bodies := []string{"ok-1", "ok-2", "fail-1", "fail-2"}
	rig.publish(q, bodies...)
	redistest.WaitFor(t, faultPatience, "all running", func() bool { return len(rig.runs.all()) == len(bodies) })
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	rig.do("SET", "change", "1")
	redistest.WaitFor(t, faultPatience, "a failed snapshot", func() bool {
		return rig.info("persistence", "rdb_last_bgsave_status") == "err"
	})
	close(gate)
	redistest.WaitFor(t, faultPatience, "a log line", func() bool { return rig.log.has("outcome cannot be written", "MISCONF") })
	if err := a.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "MISCONF") {
		t.Errorf("Healthy says %v, want MISCONF", err)
	}
	if _, err := q.Publish(t.Context(), "refused"); err == nil || errors.Is(err, xstreamq.ErrPublishUncertain) {
		t.Errorf("Publish says %v, want a refusal", err)
	}
	rig.calm(2*time.Second, "xreadgroup", 10)
	rig.do("CONFIG", "SET", "save", "")
	rig.handled(bodies)
	rig.drained()
	rig.once()
	rig.healthy(a)
}

// calm fails the test when a command comes more often than so often within d.
func (r *faultRig) calm(d time.Duration, command string, most int) {
	r.t.Helper()
	before := r.calls(command)
	r.wait(d)
	if n := r.calls(command) - before; n > most {
		r.t.Errorf("%d times %s in %s, at most %d were expected", n, command, d, most)
	}
}

// P9: Start waits for a server that is down, or still loads its data; a worker that runs goes on after both.
func TestStartWaitsForServer(t *testing.T) {
	t.Parallel()
	slow := []string{"--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"}
	for name, args := range map[string][]string{"down": nil, "loading": slow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if args != nil && redistest.Major(t, redistest.Client(t)) < 7 {
				t.Skip("SKIPPED: this server cannot be told to load slowly")
			}
			server := redistest.Start(t, redistest.Options{Dir: faultFastDir(t), Args: args})
			rig := newFaultRig(t, server)
			for i := range 400 {
				rig.do("SET", "filler-"+strconv.Itoa(i), strings.Repeat("x", 1024))
			}
			opts := xstreamq.SubscribeOptions{VisibilityTimeout: 20 * time.Second, Backoff: faultQuick}
			running, q := rig.worker(opts, faultFlaky)
			stored := []string{"flaky-before"}
			rig.publish(q, stored...)
			rig.handled(stored)
			rig.drained()
			rig.do("SAVE")

			late, lateQueue := rig.client()
			if _, err := lateQueue.Subscribe("late", faultFlaky, opts); err != nil {
				t.Fatal(err)
			}
			server.Kill()
			short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := late.Start(short); err == nil || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Start without a server says %v", err)
			}
			restarted := make(chan error, 1)
			go func() { restarted <- server.Restart() }()
			if name == "loading" {
				redistest.WaitFor(t, faultPatience, "a server that loads", func() bool { return faultLoading(server.Addr()) })
			}
			if err := late.Start(t.Context()); err != nil {
				t.Errorf("Start: %v", err)
			}
			if err := <-restarted; err != nil {
				return
			}
			rig.publish(q, "flaky-after")
			rig.handled([]string{"flaky-after"})
			rig.healthy(running)
			rig.healthy(late)
			rig.once()
		})
	}
}

// faultLoading reports whether the server answers that it loads its data.
func faultLoading(addr string) bool {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	_, _ = fmt.Fprint(conn, "PING\r\n")
	answer := make([]byte, 8)
	n, _ := conn.Read(answer)
	return string(answer[:n]) == "-LOADING"
}

// P9: while Redis is down a worker knocks a few times a second, not thousands, and it is back soon after Redis is.
func TestNoHotLoopWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: "everysec", Dir: faultFastDir(t)})
	rig := newFaultRig(t, server)
	var dials atomic.Int32
	dial := func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		dials.Add(1)
		return d.DialContext(ctx, "tcp", addr)
	}
	q := rig.over(faultOptions(t, rig.url, dial))
	if _, err := q.Publish(t.Context(), "first"); err != nil {
		t.Fatal(err)
	}
	rig.handled([]string{"first"})
	server.Kill()
	rig.wait(2 * time.Second) // the first tries follow each other more closely
	before := dials.Load()
	const d = 5 * time.Second
	rig.wait(d)
	if n := dials.Load() - before; n > 10*int32(d/time.Second) { // six loops, each about once a second
		t.Errorf("%d connections were tried in %s", n, d)
	}
	if n := rig.log.count(); n > 15 {
		t.Errorf("%d lines were logged:\n%s", n, rig.log)
	}
	if err := server.Restart(); err != nil {
		return
	}
	rig.publish(q, "second")
	rig.handled([]string{"second"})
}

// faultOptions are those of a client of ours, with a way to dial.
func faultOptions(t *testing.T, url string, dial func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)) rueidis.ClientOption {
	t.Helper()
	opts, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.DisableCache, opts.AlwaysPipelining, opts.DialCtxFn = true, true, dial
	return opts
}

// over starts a worker on a connection of the test's.
func (r *faultRig) over(opts rueidis.ClientOption) *xstreamq.Queue[string] {
	r.t.Helper()
	conn, err := rueidis.NewClient(opts)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(conn.Close)
	c, err := xstreamq.New(conn, xstreamq.Config{KeyPrefix: r.prefix, Logger: slog.New(r.log)})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	q, err := xstreamq.NewQueue[string](c, faultQueue)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := q.Subscribe(faultGroup, r.runs.record(faultFlaky), xstreamq.SubscribeOptions{Backoff: faultQuick}); err != nil {
		r.t.Fatal(err)
	}
	if err := c.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return q
}
