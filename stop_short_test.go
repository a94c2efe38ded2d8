package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P5, P7: however short the context of Stop is, and also when it has ended already, no message waits for a lease to run out: what
// Redis was just handing over is handled or given back within CancelGrace.
func TestStopWithShortContextStrandsNothing(t *testing.T) {
	t.Parallel()
	for _, deadline := range []time.Duration{0, 200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond} {
		t.Run(deadline.String(), func(t *testing.T) {
			t.Parallel()
			stopShortRaces(t, deadline, 150)
		})
	}
}

func stopShortRaces(t *testing.T, deadline time.Duration, rounds int) {
	t.Helper()
	const batch = 5
	prefix := redistest.Prefix(t)
	// A busy machine may take longer than the default for what the grace is there for.
	cfg := xstreamq.Config{KeyPrefix: prefix, CancelGrace: stopWait}
	rc := redistest.Client(t)
	out := stopQueue(t, stopConnect(t, "open", redistest.URL(t), cfg), "q")
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute, Concurrency: 2}
	var seen stopSeen
	handle := func(_ context.Context, m *xstreamq.Message[string]) error {
		seen.note(m)
		return nil
	}
	for i := range rounds {
		c := stopConnect(t, "open", redistest.URL(t), cfg)
		stopSubscribe(t, stopQueue(t, c, "q"), handle, opts)
		stopStart(t, c)
		stopped := make(chan error, 1)
		wait := rand.N(2 * time.Millisecond)
		time.AfterFunc(wait, func() {
			_, err := stopWithin(c, deadline)
			stopped <- err
		})
		for j := range batch {
			stopPublish(t, out, fmt.Sprint(i, " ", j))
		}
		if err := stopTake(t, "Stop", stopped); err != nil {
			t.Fatalf("round %d, stopped after %v: %v", i, wait, err)
		}
		if n := stopLeased(t, rc, prefix); n != 0 {
			t.Fatalf("round %d, stopped after %v: %d messages are leased to a worker that is gone", i, wait, n)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	last := stopConnect(t, "open", redistest.URL(t), cfg)
	stopSubscribe(t, stopQueue(t, last, "q"), handle, opts)
	stopStart(t, last)
	redistest.WaitFor(t, stopWait, "every message", func() bool { return seen.bodies() == rounds*batch })
	seen.unspent(t)
}

// stopLeased counts what workers hold of group g.
func stopLeased(t *testing.T, rc rueidis.Client, prefix string) int64 {
	t.Helper()
	return stopPending(t, rc, prefix+"{q}", "g") + stopPending(t, rc, prefix+"{q}.g.retry", "g-retry")
}

// P5, P7: an outcome that Redis refuses does not use up the grace in which handlers that are left behind are marked: neither costs
// its message a lost lease.
func TestRefusedOutcomeAtStopSpendsNoBudget(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rc := redistest.Client(t)
	var log faultLog
	cfg := xstreamq.Config{KeyPrefix: prefix, Logger: slog.New(&log)}
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 2 * time.Second, MaxLostLeases: xstreamq.NoRetries}
	healthCommand(t, rc, "SET", prefix+"{q}.g.delayed", "not a zset")

	c := stopConnect(t, "open", redistest.URL(t), cfg)
	q := stopQueue(t, c, "q")
	running, release := make(chan string, 2), make(chan struct{})
	defer close(release)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		running <- m.Body
		if m.Body == "stubborn" {
			<-release
		}
		return errors.New("no")
	}, opts)
	stopStart(t, c)
	stopPublish(t, q, "refused", "stubborn")
	stopTake(t, "a handler", running)
	stopTake(t, "another handler", running)
	redistest.WaitFor(t, stopWait, "a refused outcome", func() bool { return log.has("cannot be written yet", "XQTYPE") })
	took, err := stopWithin(c, 100*time.Millisecond)
	if d := stopDrainError(t, err); d.Handlers != 1 || d.Err == nil {
		t.Errorf("DrainError{Handlers: %d, Err: %v}, want 1 and the outcome that was refused", d.Handlers, d.Err)
	}
	if took > 3*time.Second {
		t.Errorf("Stop took %v", took)
	}
	healthCommand(t, rc, "DEL", prefix+"{q}.g.delayed")
	stopExpectUnspent(t, cfg, opts, 2)
	if got := stopPlaces(t, rc, prefix); got != (stopLeft{}) {
		t.Errorf("what is left: %+v", got)
	}
}

// P3, P5: a handler that MaxExtension ended, and whose outcome Redis refuses for longer than a lease, has failed: its lease is
// renewed until that is written.
func TestRefusedOutcomeAfterMaxExtensionStaysAFailure(t *testing.T) {
	t.Parallel()
	const lease = 2 * time.Second
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	var log faultLog
	rig.ask("SET", rig.keys.Backoff, "not a zset")
	rig.start(xstreamq.Config{Observer: tally.observer(), Logger: slog.New(&log)}, xstreamq.SubscribeOptions{
		VisibilityTimeout: lease, MaxExtension: lease / 2, Backoff: xstreamq.Backoff{Initial: time.Millisecond},
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		if runs.add(m) > 1 {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	rig.publish("overlong")
	redistest.WaitFor(t, leasePatience, "a refused outcome", func() bool { return log.has("cannot be written yet", "XQTYPE") })
	refused := rig.now()
	redistest.WaitFor(t, leasePatience, "two leases to pass", func() bool {
		return rig.now().Sub(refused) > 2*lease || tally.of("swept recovered") > 0
	})
	rig.ask("DEL", rig.keys.Backoff)
	redistest.WaitFor(t, leasePatience, "a second run", func() bool { return len(runs.of("overlong")) == 2 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if second := runs.of("overlong")[1]; second.Retries != 1 || second.LostLeases != 0 {
		t.Errorf("the second run knows of %d failures and %d lost leases", second.Retries, second.LostLeases)
	}
	if n := tally.of("swept recovered"); n != 0 {
		t.Errorf("its lease was lost %d times", n)
	}
}
