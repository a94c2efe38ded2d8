package xstreamq_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P3: two workers of one group, with leases of 1 s and 20 s: a handler of either that takes 10 s runs once.
func TestTenSecondHandlersUnderLeasesOfOneAndTwentySecondsRunOnce(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var tally leaseTally
	runs := map[time.Duration]*leaseRuns{time.Second: {}, 20 * time.Second: {}}
	for lease, of := range runs {
		rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
			VisibilityTimeout: lease, Concurrency: 1, Prefetch: -1, // one message each
		}, func(ctx context.Context, m *xstreamq.Message[string]) error {
			of.add(m)
			select {
			case <-time.After(10 * time.Second): // the work
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	rig.publish("a", "b")
	redistest.WaitFor(t, leasePatience, "both handled", func() bool { return tally.of("settled acked") == 2 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	for lease, of := range runs {
		if n := len(of.of("a")) + len(of.of("b")); n != 1 {
			t.Errorf("the worker with leases of %v had %d runs", lease, n)
		}
	}
	if diff := cmp.Diff(map[string]int{"settled acked": 2}, tally.all("settled", "swept")); diff != "" {
		t.Errorf("what the observer saw (-want +got):\n%s", diff)
	}
}
