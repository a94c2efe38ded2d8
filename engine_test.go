package xstreamq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

func open(t *testing.T, cfg xstreamq.Config) *xstreamq.Client {
	t.Helper()
	c, err := xstreamq.Open(redistest.URL(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	c := open(t, xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	q, err := xstreamq.NewQueue[string](c, "q")
	if err != nil {
		t.Fatal(err)
	}
	var n, bad atomic.Int32
	dead := make(chan xstreamq.DeadMessage, 1)
	_, err = q.Subscribe("g", func(ctx context.Context, m *xstreamq.Message[string]) error {
		if m.Body == "bad" {
			bad.Add(1)
			return errors.New("no")
		}
		n.Add(1)
		return nil
	}, xstreamq.SubscribeOptions{MaxRetries: 3, Backoff: xstreamq.Backoff{Initial: 10 * time.Millisecond},
		OnDeadLetter: func(ctx context.Context, d xstreamq.DeadMessage) { dead <- d }})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, err := q.Publish(t.Context(), "bad")
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := q.Publish(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Publish(t.Context(), "later", xstreamq.WithDelay(500*time.Millisecond), xstreamq.WithHeader("a", "b")); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 10*time.Second, "all handled", func() bool { return n.Load() == 101 })
	d := <-dead
	if d.OriginalID != id || d.Failures != 4 || bad.Load() != 4 {
		t.Fatalf("%+v %d", d, bad.Load())
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
