package xstreamq_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P3, P5: Redis stands still for longer than a lease, twice within a few moments. The second time comes while the sweepers still hold
// back from the first; living workers keep their messages all the same.
func TestRedisPausedTwiceCostsNoLease(t *testing.T) {
	t.Parallel()
	const messages = 30
	server := redistest.Start(t, redistest.Options{})
	var mu sync.Mutex
	runs := map[string]int{}
	lost := 0
	gate := make(chan struct{})
	var clients []*xstreamq.Client
	var q *xstreamq.Queue[string]
	for range 2 {
		c, err := xstreamq.Open(server.URL(), xstreamq.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if q, err = xstreamq.NewQueue[string](c, "q"); err != nil {
			t.Fatal(err)
		}
		_, err = q.Subscribe("g", func(_ context.Context, m *xstreamq.Message[string]) error {
			mu.Lock()
			runs[m.Body]++
			lost += m.LostLeases
			mu.Unlock()
			<-gate
			return nil
		}, xstreamq.SubscribeOptions{VisibilityTimeout: 1500 * time.Millisecond, Concurrency: messages})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	want := map[string]int{}
	for i := range messages {
		want[fmt.Sprint(i)] = 1
		if _, err := q.Publish(t.Context(), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	begun := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(runs) == messages
	}
	redistest.WaitFor(t, 20*time.Second, "all to begin", begun)

	for range 2 {
		server.Pause()
		pass(t, 3*time.Second)
		server.Resume()
		pass(t, 200*time.Millisecond)
		server.Pause()
		pass(t, 2*time.Second)
		server.Resume()
		pass(t, 4*time.Second) // for sweeps that would take them
	}
	close(gate)
	for _, c := range clients {
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, runs); diff != "" || lost > 0 {
		t.Errorf("%d lost leases; runs (-want +got):\n%s", lost, diff)
	}
}

// pass lets time pass that is the fault itself, or that a fault would need to show.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	began := time.Now()
	redistest.WaitFor(t, d+10*time.Second, "time to pass", func() bool { return time.Since(began) >= d })
}
