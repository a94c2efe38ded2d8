package xstreamq_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The original's figure and P3: when a worker dies, another gets its message within VisibilityTimeout + one sweep interval.
func TestCrashedWorkersMessageComesAgainWithinOneLeaseAndOneSweep(t *testing.T) {
	t.Parallel()
	const lease, sweep = 2 * time.Second, 200 * time.Millisecond
	const slack = 3 * time.Second // of a machine that is busy with other tests
	rig := newLeaseRig(t)
	worker := rig.worker("a", leaseWorkerOptions{VisibilityTimeout: lease, Concurrency: 1, Prefetch: -1})
	id := rig.publish("hold")[0]
	rig.noted("a", "begin")

	type run struct {
		m    xstreamq.Delivery
		when time.Time
	}
	runs := make(chan run, 10)
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{VisibilityTimeout: lease},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			runs <- run{m.Delivery, time.Now()}
			return nil
		})
	worker.kill()
	killed := time.Now()
	second := leaseTake(t, runs, "a second run")
	if took := second.when.Sub(killed); took > lease+sweep+slack {
		t.Errorf("the message came again after %v; lease %v, sweep interval %v", took, lease, sweep)
	}
	m := second.m
	if m.OriginalID != id || m.ID == id || m.Attempt != 2 || m.LostLeases != 1 || m.Retries != 0 {
		t.Errorf("published as %s, it came again as %+v", id, m)
	}
	rig.settled()
	if len(runs) != 0 {
		t.Errorf("and again: %+v", <-runs)
	}
}

// P4: a worker that was stopped past its lease can change nothing when it returns, except that its success counts for what it
// is: late. Its handler's context says why.
func TestWorkerStoppedPastItsLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		answer  string
		early   bool // the handler returns before the worker can notice that its lease is gone
		outcome string
	}{
		{"its failure", "fail", false, "lost"},
		{"its failure before it noticed", "fail", true, "lost"},
		{"its success", "ok", false, "late"},
		{"its success before it noticed", "ok", true, "late"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			testStoppedWorker(t, tt.answer, tt.early, tt.outcome)
		})
	}
}

func testStoppedWorker(t *testing.T, answer string, early bool, outcome string) {
	t.Helper()
	const lease = time.Second
	rig := newLeaseRig(t)
	worker := rig.worker("a", leaseWorkerOptions{VisibilityTimeout: lease, Concurrency: 1, Prefetch: -1})
	id := rig.publish("hold")[0]
	rig.noted("a", "begin")
	if err := worker.freeze(); err != nil {
		t.Fatal(err)
	}

	var runs leaseRuns
	var tally leaseTally
	hold := make(chan struct{})
	rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{VisibilityTimeout: lease},
		func(ctx context.Context, m *xstreamq.Message[string]) error {
			runs.add(m)
			select {
			case <-hold:
			case <-ctx.Done():
				t.Errorf("the worker that took over was cancelled: %v", context.Cause(ctx))
			}
			return nil
		})
	redistest.WaitFor(t, leasePatience, "another worker to take over", func() bool { return len(runs.of("hold")) == 1 })

	if early {
		rig.answer("a", answer)
	}
	if err := worker.thaw(); err != nil {
		t.Fatal(err)
	}
	if !early {
		if cause := rig.noted("a", "cancelled").Cause; cause != xstreamq.ErrLeaseLost.Error() {
			t.Errorf("the cause of the stopped worker's handler is %q", cause)
		}
		rig.answer("a", answer)
	}
	rig.noted("a", outcome)
	if diff := cmp.Diff(map[string][]string{id: {"retry"}}, rig.places()); diff != "" {
		t.Errorf("after the stopped worker's handler ended, where the message is (-want +got):\n%s", diff)
	}
	for _, e := range rig.entries(rig.keys.Retry) {
		// Two lost leases, when the retry stream handed it to a read of the stopped worker first.
		wantLeaseFields(t, e, map[string]string{"body": "hold", "oid": id}, "err", "lc")
	}

	close(hold)
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	redistest.WaitFor(t, leasePatience, "the end of the message", func() bool { return tally.of("settled acked") == 1 })
	if n := len(runs.of("hold")); n != 1 {
		t.Errorf("it ran %d times in the worker that took over", n)
	}
}

// P3: a group's only worker that is stopped past its lease finds its messages as it left them: after a pause it renews before
// anything is swept.
func TestOnlyWorkerStoppedPastItsLeaseKeepsItsMessage(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	rig := newLeaseRig(t)
	worker := rig.worker("a", leaseWorkerOptions{VisibilityTimeout: lease, Concurrency: 1, Prefetch: 5})
	rig.publish("hold", "ok")
	rig.noted("a", "begin")
	redistest.WaitFor(t, leasePatience, "both in the worker", func() bool { return len(rig.pending()) == 2 })
	if err := worker.freeze(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, leasePatience, "a lease that has run out", func() bool { return rig.pending()[0].Idle > 2*lease })
	if err := worker.thaw(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, leasePatience, "a renewed lease", func() bool {
		for _, row := range rig.pending() {
			if row.Idle < lease {
				return true
			}
		}
		return false
	})
	rig.answer("a", "ok")
	rig.settled()
	for _, n := range rig.journal() {
		if n.LostLeases > 0 || n.What == "cancelled" {
			t.Errorf("the worker noted %+v", n)
		}
	}
}

// P3, P4: a worker that was stopped past its leases begins none of the messages that it had read: others have them now.
func TestWorkerStoppedPastItsLeasesBeginsNoneOfThem(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	for name, prefetched := range map[string]bool{"read before": true, "read by a blocked read meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			worker := rig.worker("a", leaseWorkerOptions{VisibilityTimeout: lease, Concurrency: 1, Prefetch: 10})
			rig.publish("ok")
			rig.noted("a", "acked") // both of its reads are blocked now, or about to be
			messages := 1
			if prefetched {
				messages = 6
				rig.publish(leaseBodies("hold", messages)...)
				redistest.WaitFor(t, leasePatience, "all of them in the worker, and the first one begun", func() bool {
					return len(rig.pending()) == messages && len(leaseBegun(rig, "a")) == 2
				})
			}
			if err := worker.freeze(); err != nil {
				t.Fatal(err)
			}
			if !prefetched {
				rig.publish(leaseBodies("hold", messages)...)
			}

			var runs leaseRuns
			var tally leaseTally
			hold := make(chan struct{})
			other := rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
				VisibilityTimeout: lease, Concurrency: messages, Backoff: leaseHaste,
			}, func(ctx context.Context, m *xstreamq.Message[string]) error {
				runs.add(m)
				select {
				case <-hold:
				case <-ctx.Done():
				}
				return nil
			})
			redistest.WaitFor(t, leasePatience, "another worker to take over", func() bool { return runs.bodies() == messages })
			begun := leaseBegun(rig, "a")
			rig.answer("a", "ok")
			if err := worker.thaw(); err != nil {
				t.Fatal(err)
			}
			close(hold)
			rig.settled()
			if err := other.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			rig.publish("ok last")
			redistest.WaitFor(t, leasePatience, "the first worker at work again", func() bool { return len(leaseBegun(rig, "a")) > len(begun) })
			if diff := cmp.Diff(append(begun, "ok last"), leaseBegun(rig, "a")); diff != "" {
				t.Errorf("what the stopped worker began (-want +got):\n%s", diff)
			}
		})
	}
}

// leaseBegun returns the bodies that a worker process began.
func leaseBegun(rig *leaseRig, worker string) []string {
	rig.t.Helper()
	var begun []string
	for _, n := range rig.journal() {
		if n.Worker == worker && n.What == "begin" {
			begun = append(begun, n.Body)
		}
	}
	return begun
}
