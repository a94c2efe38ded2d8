package xstreamq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// NoVisibilityTimeout: a failure stays pending for ever. No worker retries it, also none with leases, and Stop leaves it there.
// Whatever ends a message still does.
func TestNoVisibilityTimeoutKeepsFailuresPending(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	handle := func(_ context.Context, m *xstreamq.Message[string]) error {
		runs.add(m)
		switch m.Body {
		case "fails":
			return errors.New("no")
		case "panics":
			panic("no")
		case "released":
			return xstreamq.Release(errors.New("no"))
		case "later":
			return xstreamq.RetryAfter(0, errors.New("no"))
		case "discarded":
			return xstreamq.Discard(errors.New("no"))
		case "rejected":
			return xstreamq.DeadLetter(errors.New("no"))
		}
		return nil
	}
	opts := xstreamq.SubscribeOptions{NoVisibilityTimeout: true, Backoff: leaseHaste}
	first := rig.start(xstreamq.Config{Observer: tally.observer()}, opts, handle)
	ids := rig.publish("fails", "panics", "released", "later", "discarded", "rejected", "fine")
	redistest.WaitFor(t, leasePatience, "all outcomes", func() bool {
		return tally.of("settled kept") == 4 && tally.of("settled acked") == 1 && tally.of("settled discarded") == 1
	})
	want := map[string][]string{ids[0]: {"pending"}, ids[1]: {"pending"}, ids[2]: {"pending"}, ids[3]: {"pending"}, ids[5]: {"dead"}}
	redistest.WaitFor(t, leasePatience, "the dead letter", func() bool { return len(rig.dead()) == 1 })
	if diff := cmp.Diff(want, rig.places()); diff != "" {
		t.Errorf("where messages are (-want +got):\n%s", diff)
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, rig.places()); diff != "" {
		t.Errorf("where messages are after Stop (-want +got):\n%s", diff)
	}

	// Neither its successor nor a worker with leases takes them, however long they lie.
	rig.start(xstreamq.Config{}, opts, handle)
	const lease = 200 * time.Millisecond
	opts.NoVisibilityTimeout, opts.VisibilityTimeout = false, lease
	var swept leaseTally
	c := rig.start(xstreamq.Config{Observer: swept.observer()}, opts, handle)
	began := rig.now()
	redistest.WaitFor(t, leasePatience, "a few sweeps", func() bool { return rig.now().Sub(began) > 8*lease && c.Healthy(t.Context()) == nil })
	if diff := cmp.Diff(want, rig.places()); diff != "" {
		t.Errorf("where messages are with other workers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{}, swept.all("swept")); diff != "" {
		t.Errorf("what was swept (-want +got):\n%s", diff)
	}
	for _, body := range []string{"fails", "panics", "released", "later", "discarded", "rejected", "fine"} {
		if n := len(runs.of(body)); n != 1 {
			t.Errorf("%q ran %d times", body, n)
		}
	}
}

// NoVisibilityTimeout: also what a crashed worker held stays pending for ever.
func TestNoVisibilityTimeoutKeepsWhatACrashedWorkerHeld(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	worker := rig.worker("a", leaseWorkerOptions{NoVisibilityTimeout: true, Concurrency: 1})
	id := rig.publish("hold")[0]
	rig.noted("a", "begin")
	worker.kill()
	var runs leaseRuns
	const lease = 200 * time.Millisecond
	for _, without := range []bool{true, false} {
		rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{NoVisibilityTimeout: without, VisibilityTimeout: lease},
			func(_ context.Context, m *xstreamq.Message[string]) error {
				runs.add(m)
				return nil
			})
	}
	began := rig.now()
	redistest.WaitFor(t, leasePatience, "a few sweeps", func() bool { return rig.now().Sub(began) > 8*lease })
	rig.publish("next")
	redistest.WaitFor(t, leasePatience, "the next message", func() bool { return len(runs.of("next")) == 1 })
	redistest.WaitFor(t, leasePatience, "only the held message left", func() bool {
		return cmp.Equal(map[string][]string{id: {"pending"}}, rig.places())
	})
	if n := len(runs.of("hold")); n != 0 {
		t.Errorf("it ran %d times in other workers", n)
	}
}

// NoVisibilityTimeout: Stop gives back what no handler has begun, and that alone.
func TestNoVisibilityTimeoutStopReleasesWhatNeverStarted(t *testing.T) {
	t.Parallel()
	rig := leaseRigAt(t, redistest.Start(t, redistest.Options{}).URL(), "stop:")
	var runs leaseRuns
	hold := make(chan struct{})
	opts := xstreamq.SubscribeOptions{NoVisibilityTimeout: true, Concurrency: 1}
	first := rig.start(xstreamq.Config{}, opts, func(_ context.Context, m *xstreamq.Message[string]) error {
		runs.add(m)
		<-hold
		return nil
	})
	redistest.WaitFor(t, leasePatience, "both reads blocked", func() bool {
		reply := rig.ask("INFO", "clients")
		info, _ := reply.ToString()
		return strings.Contains(info, "blocked_clients:2")
	})
	held := rig.publish("hold")[0]
	redistest.WaitFor(t, leasePatience, "a running handler", func() bool { return runs.bodies() == 1 })
	// The blocked read of the retry stream brings one more than there are handlers.
	const waits = "1-1"
	rig.ask("XADD", rig.keys.Retry, "*", "oid", waits, "body", "waits")
	redistest.WaitFor(t, leasePatience, "a message without a handler", func() bool { return len(rig.pending()) == 2 })

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var drain *xstreamq.DrainError
	if err := first.Stop(ctx); !errors.As(err, &drain) || drain.Handlers != 1 {
		t.Errorf("Stop: %v", err)
	}
	close(hold)
	var others leaseRuns
	rig.start(xstreamq.Config{}, opts, func(_ context.Context, m *xstreamq.Message[string]) error {
		others.add(m)
		return nil
	})
	redistest.WaitFor(t, leasePatience, "the released message in another worker", func() bool { return len(others.of("waits")) == 1 })
	if m := others.of("waits")[0]; m.Attempt != 1 || m.OriginalID != waits {
		t.Errorf("it came as %+v", m)
	}
	if n := len(runs.of("waits")); n != 0 {
		t.Errorf("it ran %d times in the worker that stopped", n)
	}
	redistest.WaitFor(t, leasePatience, "only the left handler's message left", func() bool {
		return cmp.Equal(map[string][]string{held: {"pending"}}, rig.places())
	})
}
