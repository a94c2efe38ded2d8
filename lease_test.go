package xstreamq_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P3: while a worker lives and its handler runs, no other worker gets the message; here the handler takes three leases.
func TestHandlerThreeTimesAsLongAsItsLeaseRunsOnce(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	var cancelled atomic.Bool
	handle := func(ctx context.Context, m *xstreamq.Message[string]) error {
		runs.add(m)
		select {
		case <-time.After(3 * lease): // the work
		case <-ctx.Done():
			cancelled.Store(true)
		}
		return nil
	}
	for range 2 {
		rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{VisibilityTimeout: lease}, handle)
	}
	rig.publish("long")
	redistest.WaitFor(t, leasePatience, "the message handled", func() bool { return tally.of("settled acked") == 1 })
	rig.settled()
	if n := len(runs.of("long")); n != 1 || cancelled.Load() {
		t.Errorf("the handler ran %d times; cancelled: %v", n, cancelled.Load())
	}
	if diff := cmp.Diff(map[string]int{"settled acked": 1}, tally.all("settled", "swept")); diff != "" {
		t.Errorf("what the observer saw (-want +got):\n%s", diff)
	}
}

// P3: each lease is as long as its owner says, so workers of one group with different ones do not take from each other.
func TestWorkersWithDifferentLeasesKeepTheirMessages(t *testing.T) {
	t.Parallel()
	const short, work = time.Second, 4 * time.Second
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	for _, lease := range []time.Duration{short, 20 * short} {
		rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
			VisibilityTimeout: lease, Concurrency: 1, Prefetch: -1,
		}, func(ctx context.Context, m *xstreamq.Message[string]) error {
			runs.add(m)
			select {
			case <-time.After(work):
			case <-ctx.Done():
			}
			return nil
		})
	}
	rig.publish("a", "b")
	redistest.WaitFor(t, leasePatience, "both workers busy", func() bool { return runs.bodies() == 2 })
	redistest.WaitFor(t, leasePatience, "both handled", func() bool { return tally.of("settled acked") == 2 })
	rig.settled()
	if a, b := len(runs.of("a")), len(runs.of("b")); a != 1 || b != 1 {
		t.Errorf("the messages ran %d and %d times", a, b)
	}
	if diff := cmp.Diff(map[string]int{"settled acked": 2}, tally.all("settled", "swept")); diff != "" {
		t.Errorf("what the observer saw (-want +got):\n%s", diff)
	}
}

// P3: leases renew themselves up to MaxExtension. Then the handler is cancelled; what it returns within the lease it still has
// is a failure.
func TestMaxExtensionCancelsTheHandlerAndWhatItReturnsIsAFailure(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	for name, late := range map[string]error{"an error": errors.New("gave up"), "nil": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			var runs leaseRuns
			cause := make(chan error, 1)
			rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
				VisibilityTimeout: lease, MaxExtension: 3 * lease / 2, Backoff: xstreamq.Backoff{Initial: time.Millisecond},
			}, func(ctx context.Context, m *xstreamq.Message[string]) error {
				if runs.add(m) > 1 {
					return nil
				}
				<-ctx.Done()
				cause <- context.Cause(ctx)
				<-time.After(lease / 2) // it cleans up within the lease that is left
				return late
			})
			rig.publish("hung")
			redistest.WaitFor(t, leasePatience, "a second run", func() bool { return len(runs.of("hung")) == 2 })
			if dead := rig.settled(); len(dead) != 0 {
				t.Errorf("dead letters: %v", dead)
			}
			if err := leaseTake(t, cause, "the cause"); !errors.Is(err, xstreamq.ErrMaxExtension) {
				t.Errorf("the cause is %v", err)
			}
			if second := runs.of("hung")[1]; second.Retries != 1 || second.LostLeases != 0 {
				t.Errorf("the second run knows of %d failures and %d lost leases", second.Retries, second.LostLeases)
			}
		})
	}
}

// P3, P5: a handler that ignores MaxExtension loses its lease, the message moves on to another run, and what the first one
// returns in the end changes nothing.
func TestMaxExtensionMovesTheMessageOnWhenTheHandlerHangs(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	release, cause := make(chan struct{}), make(chan error, 1)
	rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
		VisibilityTimeout: lease, MaxExtension: lease / 2, Concurrency: 2,
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		if runs.add(m) > 1 {
			return nil
		}
		<-release
		cause <- context.Cause(ctx)
		return errors.New("too late")
	})
	rig.publish("hung")
	redistest.WaitFor(t, leasePatience, "another run, and its end", func() bool { return tally.of("settled acked") == 1 })
	close(release)
	redistest.WaitFor(t, leasePatience, "the end of the first run", func() bool { return tally.of("settled lost") == 1 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if err := leaseTake(t, cause, "the cause"); !errors.Is(err, xstreamq.ErrMaxExtension) {
		t.Errorf("the cause is %v", err)
	}
	if second := runs.of("hung")[1]; second.Retries != 0 || second.LostLeases != 1 {
		t.Errorf("the second run knows of %d failures and %d lost leases", second.Retries, second.LostLeases)
	}
	if n := len(runs.of("hung")); n != 2 {
		t.Errorf("it ran %d times", n)
	}
}

// A negative MaxExtension: the lease is never renewed once the handler runs. It is while the message waits for one.
func TestNegativeMaxExtensionNeverRenewsARunningHandler(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	cause := make(chan error, 1)
	rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
		VisibilityTimeout: lease, MaxExtension: -1, Concurrency: 2,
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		if runs.add(m) > 1 || m.Body == "short" {
			return nil
		}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	})
	rig.publish("long", "short")
	if err := leaseTake(t, cause, "the cause"); !errors.Is(err, xstreamq.ErrLeaseLost) {
		t.Errorf("the cause is %v", err)
	}
	redistest.WaitFor(t, leasePatience, "a second run of the long one", func() bool { return len(runs.of("long")) == 2 })
	rig.settled()
	redistest.WaitFor(t, leasePatience, "every outcome", func() bool { return tally.of("settled late") == 1 && tally.of("settled acked") == 2 })
	if second := runs.of("long")[1]; second.LostLeases != 1 || second.Retries != 0 {
		t.Errorf("the second run knows of %d failures and %d lost leases", second.Retries, second.LostLeases)
	}
	if n := len(runs.of("short")); n != 1 {
		t.Errorf("the short handler ran %d times", n)
	}
}

// P3, P5: a message that waited a whole lease without a handler is given to another worker, and that spends nothing.
func TestMessageThatWaitedAWholeLeaseGoesToAFreeWorker(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	rig := newLeaseRig(t)
	var busy, free leaseRuns
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: lease, Concurrency: 1, Prefetch: 10}
	hold := make(chan struct{})
	rig.start(xstreamq.Config{}, opts, func(_ context.Context, m *xstreamq.Message[string]) error {
		busy.add(m)
		<-hold
		return nil
	})
	defer close(hold)
	rig.publish("hold", "a", "b", "c", "d")
	redistest.WaitFor(t, leasePatience, "all of them in one worker", func() bool { return len(rig.pending()) == 5 && busy.bodies() == 1 })

	rig.start(xstreamq.Config{}, opts, func(_ context.Context, m *xstreamq.Message[string]) error {
		free.add(m)
		return nil
	})
	redistest.WaitFor(t, leasePatience, "the others in the free worker", func() bool { return free.bodies() == 4 })
	for _, body := range []string{"a", "b", "c", "d"} {
		if runs := free.of(body); len(runs) != 1 || runs[0].Attempt != 1 {
			t.Errorf("%s: runs %+v; one with Attempt 1 was expected", body, runs)
		}
	}
	if n := len(busy.of("hold")) + len(free.of("hold")); n != 1 {
		t.Errorf("the message with a handler ran %d times", n)
	}
}

// P9, P3: when Redis stands still for longer than a lease, handlers that run meanwhile keep their messages.
func TestPausedRedisCostsRunningHandlersNothing(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	server := redistest.Start(t, redistest.Options{})
	rig := leaseRigAt(t, server.URL(), "pause:")
	var runs leaseRuns
	var tally leaseTally
	hold := make(chan struct{})
	for range 2 {
		rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{VisibilityTimeout: lease, Concurrency: 5, Prefetch: -1},
			func(ctx context.Context, m *xstreamq.Message[string]) error {
				runs.add(m)
				select {
				case <-hold:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			})
	}
	rig.publish(leaseBodies("hold", 10)...)
	redistest.WaitFor(t, leasePatience, "all handlers running", func() bool { return runs.bodies() == 10 })

	server.Pause()
	time.Sleep(5 * lease / 2) // the fault itself
	server.Resume()

	// Each is renewed, and one more lease goes by in which every sweep has looked at it.
	redistest.WaitFor(t, leasePatience, "leases that are renewed", func() bool { return leaseRenewed(rig.pending(), 10, lease) })
	resumed := rig.now()
	redistest.WaitFor(t, leasePatience, "one more lease gone by", func() bool { return rig.now().Sub(resumed) > lease })
	close(hold)
	redistest.WaitFor(t, leasePatience, "all handled", func() bool { return tally.of("settled acked") == 10 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if diff := cmp.Diff(map[string]int{"settled acked": 10}, tally.all("settled", "swept")); diff != "" {
		t.Errorf("what the observer saw (-want +got):\n%s", diff)
	}
	for _, body := range leaseBodies("hold", 10) {
		if n := len(runs.of(body)); n != 1 {
			t.Errorf("%q ran %d times", body, n)
		}
	}
}

// leaseRenewed says that n messages are pending, all with most of their lease before them.
func leaseRenewed(rows []leaseRow, n int, lease time.Duration) bool {
	for _, row := range rows {
		if row.Idle > lease/2 {
			return false
		}
	}
	return len(rows) == n
}

// Two clients with the same ConsumerName do not disturb each other, also not when one stops.
func TestSameConsumerNameDisturbsNobody(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	type worker struct {
		client *xstreamq.Client
		runs   leaseRuns
		hold   chan struct{}
	}
	var workers [2]*worker
	for i := range workers {
		w := &worker{hold: make(chan struct{})}
		workers[i] = w
		w.client = rig.start(xstreamq.Config{ConsumerName: "same"}, xstreamq.SubscribeOptions{
			VisibilityTimeout: time.Minute, Concurrency: 1, Prefetch: 4,
		}, func(ctx context.Context, m *xstreamq.Message[string]) error {
			w.runs.add(m)
			select {
			case <-w.hold:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}
	rig.publish(leaseBodies("m", 10)...)
	redistest.WaitFor(t, leasePatience, "both workers full", func() bool {
		return len(rig.pending()) == 10 && workers[0].runs.bodies() == 1 && workers[1].runs.bodies() == 1
	})
	held := map[string][]string{}
	for _, row := range rig.pending() {
		held[row.Consumer] = append(held[row.Consumer], row.ID)
	}
	if len(held) != 2 {
		t.Fatalf("two clients are these consumers: %v", held)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := workers[0].client.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	// What the other holds is untouched; what was released may be with it too by now.
	kept := map[string]int{}
	for _, row := range rig.pending() {
		if slices.Contains(held[row.Consumer], row.ID) {
			kept[row.Consumer]++
		}
	}
	if len(kept) != 1 || slices.Max(slices.Collect(maps.Values(kept))) != 5 {
		t.Errorf("of %v, after one stopped these hold what they held: %v", held, kept)
	}
	close(workers[1].hold)
	redistest.WaitFor(t, leasePatience, "the other to handle all", func() bool { return workers[1].runs.bodies() == 10 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	for _, body := range leaseBodies("m", 10) {
		if runs := workers[1].runs.of(body); len(runs) != 1 || runs[0].Attempt != 1 {
			t.Errorf("%q in the worker that went on: %+v", body, runs)
		}
	}
}
