package xstreamq_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// markers returns the Dedupe markers: original id -> expiry.
func (r *leaseRig) markers() map[string]time.Time {
	r.t.Helper()
	found, err := r.redis.Do(r.t.Context(), r.redis.B().Zrange().Key(r.keys.Done).Min("0").Max("-1").Withscores().Build()).AsZScores()
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]time.Time{}
	for _, z := range found {
		out[z.Member] = time.UnixMilli(int64(z.Score))
	}
	return out
}

// loseGroup has everything that is not trimmed delivered again, as after Redis lost the group.
func (r *leaseRig) loseGroup() {
	r.t.Helper()
	r.ask("XGROUP", "DESTROY", r.keys.Queue, "g")
}

// Dedupe: what was handled is skipped when it comes again, here since Redis lost the group. What was not handled, runs.
func TestDedupeSkipsWhatWasHandled(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	hold := make(chan struct{})
	rig.start(xstreamq.Config{Observer: tally.observer(), CompactEvery: -1}, xstreamq.SubscribeOptions{
		Dedupe: time.Hour, Backoff: leaseHaste,
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		n := runs.add(m)
		switch {
		case m.Body == "discarded":
			return xstreamq.Discard(nil)
		case m.Body == "twice" && n == 1:
			return errors.New("once")
		case m.Body == "still running":
			select {
			case <-hold:
			case <-ctx.Done():
			}
		}
		return nil
	})
	before := rig.now()
	ids := rig.publish("fine", "discarded", "twice", "still running")
	redistest.WaitFor(t, leasePatience, "three markers", func() bool { return len(rig.markers()) == 3 })
	for id, expiry := range rig.markers() {
		if expiry.Before(before.Add(time.Hour)) || expiry.After(rig.now().Add(time.Hour+time.Second)) {
			t.Errorf("the marker of %s expires at %v", id, expiry)
		}
	}

	rig.loseGroup()
	redistest.WaitFor(t, leasePatience, "three skipped messages", func() bool { return tally.of("settled skipped") == 3 })
	close(hold)
	redistest.WaitFor(t, leasePatience, "the marker of the last one", func() bool { return len(rig.markers()) == 4 })
	rig.settled()
	got := map[string]int{}
	for _, body := range []string{"fine", "discarded", "twice", "still running"} {
		got[body] = len(runs.of(body))
	}
	if diff := cmp.Diff(map[string]int{"fine": 1, "discarded": 1, "twice": 2, "still running": 1}, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	for _, id := range ids {
		if _, ok := rig.markers()[id]; !ok {
			t.Errorf("no marker of %s", id)
		}
	}
}

// Dedupe covers late acks: a handler that succeeds after its lease was lost marks its message, and the redelivery is skipped.
func TestDedupeSkipsARedeliveryWhoseFirstRunSucceededLate(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	hold := make(chan struct{})
	rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
		Dedupe: time.Hour, VisibilityTimeout: 300 * time.Millisecond, MaxExtension: -1,
		Backoff: xstreamq.Backoff{Initial: time.Hour, Max: time.Hour},
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		if runs.add(m) == 1 {
			return loseLease(ctx)
		}
		<-hold
		return nil
	})
	id := rig.publish("m")[0]
	// The second lost lease waits a backoff, which gives the handler the time to succeed late.
	redistest.WaitFor(t, leasePatience, "the message in its backoff", func() bool { return len(rig.waiting()) == 1 })
	close(hold)
	redistest.WaitFor(t, leasePatience, "a late success", func() bool { return tally.of("settled late") == 1 })
	if _, ok := rig.markers()[id]; !ok {
		t.Fatalf("no marker of %s: %v", id, rig.markers())
	}

	rig.dueNow()
	redistest.WaitFor(t, leasePatience, "a skipped message", func() bool { return tally.of("settled skipped") == 1 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if n := len(runs.of("m")); n != 2 {
		t.Errorf("it ran %d times", n)
	}
}

// dueNow ends every backoff.
func (r *leaseRig) dueNow() {
	r.t.Helper()
	const script = `for _, m in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do redis.call('ZADD', KEYS[1], 'XX', 0, m) end`
	r.ask("EVAL", script, "1", r.keys.Backoff)
}

// Dedupe remembers for as long as it says: after that a message that comes again runs again.
func TestDedupeForgetsAfterItsTime(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	rig.start(xstreamq.Config{CompactEvery: -1}, xstreamq.SubscribeOptions{Dedupe: 500 * time.Millisecond},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			runs.add(m)
			return nil
		})
	rig.publish("m")
	redistest.WaitFor(t, leasePatience, "the first run", func() bool { return len(runs.of("m")) == 1 })
	rig.settled()
	redistest.WaitFor(t, leasePatience, "the end of its marker", func() bool {
		for _, expiry := range rig.markers() {
			if !rig.now().After(expiry) {
				return false
			}
		}
		return true
	})
	rig.loseGroup()
	redistest.WaitFor(t, leasePatience, "another run", func() bool { return len(runs.of("m")) == 2 })
}

// Dedupe markers that have expired are removed as messages are handled: the set shrinks to what is alive.
func TestDedupePrunesExpiredMarkers(t *testing.T) {
	t.Parallel()
	const old = 1000
	rig := newLeaseRig(t)
	for i := range old {
		rig.ask("ZADD", rig.keys.Done, "1", strconv.Itoa(i+1)+"-0") // expired long ago
	}
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{Dedupe: time.Hour},
		func(context.Context, *xstreamq.Message[string]) error { return nil })
	rig.publish(leaseBodies("m", old)...)
	redistest.WaitFor(t, leasePatience, "the new markers alone", func() bool {
		now, alive := rig.now(), 0
		for _, expiry := range rig.markers() {
			if expiry.Before(now) {
				return false
			}
			alive++
		}
		return alive == old
	})
	rig.settled()
}
