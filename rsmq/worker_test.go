package rsmq

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// working runs a worker for the length of the test.
func working(t *testing.T, c *Client, handle Handler, o WorkerOptions) {
	t.Helper()
	if len(o.Intervals) == 0 {
		o.Intervals = []time.Duration{0, 5 * time.Millisecond}
	}
	w, err := c.NewWorker("q", handle, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// handInto is a handler that passes its messages on.
func handInto(handled chan<- Message) Handler {
	return func(_ context.Context, m Message) error {
		handled <- m
		return nil
	}
}

// A message is deleted after success; kept after ErrKeep, an error, a panic and Goexit, all but the first of which are reported.
func TestWorkerVerdicts(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	ids := send(t, c, "q", "fine", "keep", "error", "panic", "goexit", "end")
	deleted, failures, handled := make(chan string, 10), make(chan string, 10), make(chan struct{})
	working(t, c, func(_ context.Context, m Message) error {
		switch m.Body {
		case "keep":
			return ErrKeep
		case "error":
			return errors.New("out of stock")
		case "panic":
			panic("a nil map")
		case "goexit":
			runtime.Goexit()
		case "end":
			defer close(handled)
		}
		return nil
	}, WorkerOptions{Invisible: time.Hour, Events: WorkerEvents{
		Deleted: func(id string) { deleted <- id },
		Error: func(err error, m *Message) {
			failures <- m.Body + ": " + err.Error()
		},
	}})
	<-handled
	if first, last := <-deleted, <-deleted; first != ids[0] || last != ids[5] {
		t.Errorf("deleted %s and %s of %q", first, last, ids)
	}
	for _, want := range []string{"error: out of stock", "panic: the handler panicked: a nil map", "goexit: the handler called runtime.Goexit"} {
		if got := <-failures; !strings.HasPrefix(got, want) {
			t.Errorf("reported %q, want %q", got, want)
		}
	}
	if a := attributes(t, c, "q"); a.Messages != 4 || a.Visible != 0 {
		t.Errorf("attributes: %+v", a)
	}
}

// A message that came too often is given up: not handled, unless as the Node worker does it.
func TestWorkerExceeded(t *testing.T) {
	t.Parallel()
	for name, compatible := range map[string]bool{"given up": false, "as Node does": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fresh(t, Config{})
			create(t, c, "q", QueueOptions{})
			id := send(t, c, "q", "a")[0]
			handled, exceeded, deleted := make(chan int64, 10), make(chan int64, 1), make(chan string, 2)
			working(t, c, func(_ context.Context, m Message) error {
				handled <- m.ReceiveCount
				return ErrKeep
			}, WorkerOptions{MaxReceiveCount: 3, Invisible: time.Millisecond, NodeCompatible: compatible, Events: WorkerEvents{
				Exceeded: func(m Message) { exceeded <- m.ReceiveCount },
				Deleted:  func(id string) { deleted <- id },
			}})
			if n := <-exceeded; n != 3 {
				t.Errorf("given up at delivery %d", n)
			}
			if got := <-deleted; got != id {
				t.Errorf("deleted %s", got)
			}
			want := 2
			if compatible {
				want = 3
			}
			for i := range want {
				if n := <-handled; n != int64(i+1) {
					t.Errorf("handled delivery %d", n)
				}
			}
			redistest.WaitFor(t, 10*time.Second, "an empty queue", func() bool { return attributes(t, c, "q").Messages == 0 })
			if len(handled) > 0 {
				t.Errorf("handled delivery %d too", <-handled)
			}
		})
	}
}

// A handler that takes too long has its context ended, the worker goes on, and the message is kept.
func TestWorkerTimeout(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	send(t, c, "q", "slow", "quick")
	causes, quick, late := make(chan error, 1), make(chan struct{}), make(chan string, 1)
	working(t, c, func(ctx context.Context, m Message) error {
		if m.Body == "quick" {
			close(quick)
			return nil
		}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		<-quick // beside the next one
		return nil
	}, WorkerOptions{Timeout: 20 * time.Millisecond, Invisible: time.Hour, Events: WorkerEvents{Timeout: func(m Message) { late <- m.Body }}})
	if err := <-causes; !errors.Is(err, ErrHandlerTimeout) {
		t.Error(err)
	}
	if body := <-late; body != "slow" {
		t.Errorf("%q is late", body)
	}
	<-quick
	redistest.WaitFor(t, 10*time.Second, "the quick one deleted", func() bool { return attributes(t, c, "q").Messages == 1 })
}

// With Renew a message stays hidden for as long as its handler runs.
func TestWorkerRenews(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	send(t, c, "q", "a")
	counts := make(chan int64, 10)
	begun, release := make(chan struct{}), make(chan struct{})
	working(t, c, func(_ context.Context, m Message) error {
		counts <- m.ReceiveCount
		close(begun)
		<-release
		return nil
	}, WorkerOptions{Invisible: 3 * time.Second, Renew: true, Timeout: -1})
	<-begun
	score := func() string {
		text, err := run(t, c, "ZSCORE", c.keys("q").Messages, sole(t, c)).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := score()
	redistest.WaitFor(t, 20*time.Second, "a renewal", func() bool { return score() > before })
	close(release)
	redistest.WaitFor(t, 10*time.Second, "an empty queue", func() bool { return attributes(t, c, "q").Messages == 0 })
	if n := <-counts; n != 1 || len(counts) > 0 {
		t.Errorf("delivery %d, and %d more", n, len(counts))
	}
}

// sole is the id of the only message.
func sole(t *testing.T, c *Client) string {
	t.Helper()
	ids, err := run(t, c, "ZRANGE", c.keys("q").Messages, "0", "-1").AsStrSlice()
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	return ids[0]
}

// The worker goes on after its server was away, and makes its queue when there was none at the beginning.
func TestWorkerOutlivesOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: "always"})
	c := over(t, redistest.Dial(t, server.URL()), Config{})
	server.Kill()
	handled, failures, ready := make(chan string, 10), make(chan error, 1000), make(chan struct{})
	working(t, c, func(_ context.Context, m Message) error {
		handled <- m.Body
		return nil
	}, WorkerOptions{Events: WorkerEvents{
		Ready: func() { close(ready) },
		Error: func(err error, _ *Message) {
			select {
			case failures <- err:
			default:
			}
		},
	}})
	<-failures
	for range 2 {
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		<-ready
		redistest.WaitFor(t, 20*time.Second, "a send", func() bool {
			_, err := c.SendMessage(t.Context(), "q", "a", SendOptions{})
			return err == nil
		})
		if body := <-handled; body != "a" {
			t.Errorf("handled %q", body)
		}
		server.Kill()
		<-failures
	}
}

// Send uses the worker's default delay, and says so.
func TestWorkerSend(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	sent := make(chan string, 2)
	w, err := c.NewWorker("q", func(context.Context, Message) error { return nil }, WorkerOptions{
		DefaultDelay: time.Hour, Events: WorkerEvents{New: func(id string) { sent <- id }},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, delay := range []*time.Duration{nil, Seconds(0)} {
		id, err := w.Send(t.Context(), "a", delay)
		if got := <-sent; err != nil || got != id {
			t.Error(id, got, err)
		}
	}
	if a := attributes(t, c, "q"); a.Messages != 2 || a.Visible != 1 {
		t.Errorf("attributes: %+v", a)
	}
}

func TestWrongWorker(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	handle := func(context.Context, Message) error { return nil }
	if _, err := c.NewWorker("q", nil, WorkerOptions{}); err == nil {
		t.Error("no handler")
	}
	_, err := c.NewWorker("a b", handle, WorkerOptions{Intervals: []time.Duration{-1}, Invisible: -1, DefaultDelay: MaxTime + 1})
	for _, want := range []string{"Invalid qname format", "interval", "Invisible", "DefaultDelay"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want it to name %s", err, want)
		}
	}
}
