package rsmq

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Stop lets the handler under way finish, and deletes its message; the end of the context ends that of the handler.
func TestWorkerStop(t *testing.T) {
	t.Parallel()
	for name, graceful := range map[string]bool{"Stop": true, "the context ends": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fresh(t, Config{})
			create(t, c, "q", QueueOptions{})
			send(t, c, "q", "a", "b")
			begun, release, stopped := make(chan context.Context, 1), make(chan struct{}), make(chan struct{})
			w, err := c.NewWorker("q", func(ctx context.Context, _ Message) error {
				begun <- ctx
				<-release
				return ctx.Err()
			}, WorkerOptions{Timeout: -1, Events: WorkerEvents{Stopped: func() { close(stopped) }}})
			if err != nil {
				t.Fatal(err)
			}
			w.Stop() // there is nothing to stop
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			defer cancel()
			ended := make(chan error)
			go func() { ended <- w.Run(ctx) }()
			handling := <-begun
			if err := w.Run(ctx); !errors.Is(err, ErrRunning) {
				t.Errorf("a second Run: %v", err)
			}
			left := int64(1)
			if graceful {
				w.Stop()
				w.Stop()
			} else {
				left = 2
				cancel()
				<-handling.Done()
			}
			select {
			case <-stopped:
				t.Error("it stopped while a handler runs")
			case err := <-ended:
				t.Errorf("Run returned while a handler runs: %v", err)
			default:
			}
			close(release)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			<-stopped
			if a := attributes(t, c, "q"); a.Messages != left || a.Received != 1 {
				t.Errorf("attributes: %+v", a)
			}
		})
	}
}

// A worker can run again.
func TestWorkerRunsAgain(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	handled := make(chan Message, 1)
	w, err := c.NewWorker("q", handInto(handled), WorkerOptions{Intervals: []time.Duration{time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ended := make(chan error)
		go func() { ended <- w.Run(context.WithoutCancel(t.Context())) }()
		redistest.WaitFor(t, 10*time.Second, "the queue", func() bool {
			_, err := c.GetQueueAttributes(t.Context(), "q")
			return err == nil
		})
		send(t, c, "q", "a")
		<-handled
		w.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// stoppingClient calls stop when a message has been received.
type stoppingClient struct {
	rueidis.Client
	stop func()
}

func (c *stoppingClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	receive := cmd.Commands()[1] == receiveSHA || cmd.Commands()[1] == receiveSource
	result := c.Client.Do(ctx, cmd)
	if receive && result.Error() == nil {
		c.stop()
	}
	return result
}

// A message that comes when the worker is just being stopped is given back.
func TestWorkerGivesBack(t *testing.T) {
	t.Parallel()
	for name, graceful := range map[string]bool{"Stop": true, "the context ends": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fresh(t, Config{})
			create(t, c, "q", QueueOptions{})
			send(t, c, "q", "a")
			stopping := &stoppingClient{Client: c.redis}
			w, err := over(t, stopping, Config{Namespace: strings.TrimSuffix(c.prefix, ":")}).NewWorker("q", func(context.Context, Message) error {
				t.Error("it was handled")
				return nil
			}, WorkerOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if stopping.stop = w.Stop; !graceful {
				stopping.stop = cancel
			}
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
			if a := attributes(t, c, "q"); a.Visible != 1 || a.Received != 1 {
				t.Errorf("attributes: %+v", a)
			}
		})
	}
}

// Close of its client ends a worker.
func TestWorkerOfClosedClient(t *testing.T) {
	t.Parallel()
	c, err := Open(redistest.URL(t), Config{Namespace: redistest.Prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.NewWorker("q", func(context.Context, Message) error { return nil }, WorkerOptions{Events: WorkerEvents{Ready: c.Close}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time it cannot make the queue
		if err := w.Run(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	}
}

// LogEvents writes what happens, and no body.
func TestLogEvents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	e := LogEvents(log, "q")
	m := Message{ID: "i", Body: "s3cret", ReceiveCount: 3}
	e.Ready()
	e.Data(m)
	e.New("n")
	e.Deleted("i")
	e.Exceeded(m)
	e.Timeout(m)
	e.Error(errors.New("no luck"), &m)
	e.Error(errors.New("no Redis"), nil)
	e.Stopped()
	want := `level=DEBUG msg="worker polls" queue=q
level=DEBUG msg="message received" queue=q id=i attempt=3
level=DEBUG msg="message sent" queue=q id=n
level=DEBUG msg="message deleted" queue=q id=i
level=WARN msg="message given up" queue=q id=i attempt=3
level=WARN msg="handler timed out" queue=q id=i attempt=3
level=ERROR msg="message failed" queue=q id=i attempt=3 err="no luck"
level=ERROR msg="worker failed" queue=q err="no Redis"
level=DEBUG msg="worker stopped" queue=q
`
	if out.String() != want {
		t.Errorf("logged\n%s", out.String())
	}
}
