package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// leaseHaste is a backoff for tests that do not look at it.
var leaseHaste = xstreamq.Backoff{Initial: time.Millisecond, Max: time.Millisecond}

// The original's figure, and P6: with MaxRetries 3 a message that always fails is dead after exactly 4 attempts.
func TestAlwaysFailingMessageIsDeadAfterMaxRetriesPlusOneAttempts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ maxRetries, attempts int }{
		"MaxRetries 3": {3, 4}, "MaxRetries 1": {1, 2}, "NoRetries": {xstreamq.NoRetries, 1}, "default": {0, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			var runs leaseRuns
			rig.start(xstreamq.Config{ConsumerName: "me"}, xstreamq.SubscribeOptions{MaxRetries: tt.maxRetries, Backoff: leaseHaste},
				func(_ context.Context, m *xstreamq.Message[string]) error {
					return fmt.Errorf("failure %d", runs.add(m))
				})
			const body = "bytes \x00\xff as they were"
			id := rig.publish(body)[0]
			redistest.WaitFor(t, leasePatience, "a dead letter", func() bool { return len(rig.dead()) == 1 })
			wantLeaseFields(t, rig.settled()[0], map[string]string{
				"body": body, "oid": id, "rc": strconv.Itoa(tt.attempts), "reason": "failed", "err": fmt.Sprintf("failure %d", tt.attempts),
			}, "at", "from", "by")
			all := runs.of(body)
			if len(all) != tt.attempts {
				t.Errorf("%d runs, not %d", len(all), tt.attempts)
			}
			for i, m := range all {
				if m.Attempt != i+1 || m.Retries != i || m.LostLeases != 0 || m.OriginalID != id {
					t.Errorf("run %d: %+v", i+1, m)
				}
			}
		})
	}
}

// P5: RetryForever never makes a dead letter of a failure.
func TestRetryForeverOutlivesTheDefaultBudget(t *testing.T) {
	t.Parallel()
	const failures = 8
	rig := newLeaseRig(t)
	var runs leaseRuns
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{MaxRetries: xstreamq.RetryForever, Backoff: leaseHaste},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			if runs.add(m) <= failures {
				return errors.New("not yet")
			}
			return nil
		})
	rig.publish("m")
	redistest.WaitFor(t, leasePatience, "the run that succeeds", func() bool { return len(runs.of("m")) == failures+1 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if last := runs.of("m")[failures]; last.Retries != failures || last.Attempt != failures+1 {
		t.Errorf("the last run knows of %d failures: %+v", last.Retries, last)
	}
}

// loseLease overruns its lease, which a negative MaxExtension never renews: the message is lost as if its worker had vanished.
func loseLease(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// P5, P6: a message whose leases are always lost is dead after MaxLostLeases + 1 of them, as lost-lease and with no failure.
func TestAlwaysLostMessageIsDeadAfterMaxLostLeasesPlusOne(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ maxLost, losses int }{
		"MaxLostLeases 1": {1, 2}, "MaxLostLeases 3": {3, 4}, "NoRetries": {xstreamq.NoRetries, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			var runs leaseRuns
			rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
				MaxRetries: xstreamq.NoRetries, MaxLostLeases: tt.maxLost,
				VisibilityTimeout: 300 * time.Millisecond, MaxExtension: -1, Backoff: leaseHaste,
			}, func(ctx context.Context, m *xstreamq.Message[string]) error {
				runs.add(m)
				return loseLease(ctx)
			})
			id := rig.publish("m")[0]
			redistest.WaitFor(t, leasePatience, "a dead letter", func() bool { return len(rig.dead()) == 1 })
			wantLeaseFields(t, rig.settled()[0], map[string]string{
				"body": "m", "oid": id, "lc": strconv.Itoa(tt.losses), "reason": "lost-lease",
			}, "err", "at", "from", "by")
			for i, m := range runs.of("m") {
				if m.Attempt != i+1 || m.Retries != 0 || m.LostLeases != i {
					t.Errorf("run %d: %+v", i+1, m)
				}
			}
		})
	}
}

// P5: RetryForever never makes a dead letter of a lost lease.
func TestRetryForeverOfLostLeases(t *testing.T) {
	t.Parallel()
	const losses = 7 // one more than the default budget takes
	rig := newLeaseRig(t)
	var runs leaseRuns
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
		MaxLostLeases: xstreamq.RetryForever, VisibilityTimeout: 200 * time.Millisecond, MaxExtension: -1, Backoff: leaseHaste,
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		if runs.add(m) <= losses {
			return loseLease(ctx)
		}
		return nil
	})
	rig.publish("m")
	redistest.WaitFor(t, leasePatience, "the run that succeeds", func() bool { return len(runs.of("m")) > losses })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if last := runs.of("m")[losses]; last.LostLeases < losses || last.Retries != 0 {
		t.Errorf("the last run: %+v", last)
	}
}

// P3: the first lost lease waits for nothing, the second for the first backoff, between half and all of it.
func TestRepeatedlyLostMessagesPart(t *testing.T) {
	t.Parallel()
	const messages = 20
	for name, backoff := range map[string]xstreamq.Backoff{
		"the built-in backoff": {Initial: time.Hour, Max: time.Hour},
		"a func":               {Func: func(int, error) time.Duration { return time.Hour }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
				Concurrency: messages, VisibilityTimeout: 300 * time.Millisecond, MaxExtension: -1, Backoff: backoff,
			}, func(ctx context.Context, _ *xstreamq.Message[string]) error { return loseLease(ctx) })
			before := rig.now()
			rig.publish(leaseBodies("m", messages)...)
			redistest.WaitFor(t, leasePatience, "all of them in their backoff", func() bool { return len(rig.waiting()) == messages })
			after := rig.now()
			due := map[time.Time]bool{}
			for _, w := range rig.waiting() {
				due[w.Due] = true
				if w.Due.Before(before.Add(time.Hour/2)) || w.Due.After(after.Add(time.Hour)) || w.Fields["lc"] != "2" {
					t.Errorf("%s: lc %s, due %v after the test began", w.ID, w.Fields["lc"], w.Due.Sub(before))
				}
			}
			if len(due) < messages/2 {
				t.Errorf("%d messages are due at %d times", messages, len(due))
			}
		})
	}
}

// P5: failures, lost leases and releases are counted apart, whatever order they come in.
func TestBudgetsAreNeverMixed(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
		MaxRetries: 2, MaxLostLeases: 2, VisibilityTimeout: 300 * time.Millisecond, MaxExtension: -1, Backoff: leaseHaste,
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		switch runs.add(m) {
		case 1, 4:
			return errors.New("failed")
		case 2, 5:
			return loseLease(ctx)
		case 3, 6, 7:
			return xstreamq.Release(errors.New("released"))
		}
		return nil
	})
	rig.publish("m")
	redistest.WaitFor(t, leasePatience, "the run that succeeds", func() bool { return len(runs.of("m")) == 8 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	type counts struct{ Retries, LostLeases, Attempt int }
	var got []counts
	for _, m := range runs.of("m") {
		got = append(got, counts{m.Retries, m.LostLeases, m.Attempt})
	}
	want := []counts{{0, 0, 1}, {1, 0, 2}, {1, 1, 3}, {1, 1, 3}, {2, 1, 4}, {2, 2, 5}, {2, 2, 5}, {2, 2, 5}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what the runs were told (-want +got):\n%s", diff)
	}
}

// P3: messages that lost several leases run one at a time, but one whose handler hangs past its lease holds up no other.
func TestHungHandlerHoldsUpNoOtherMessageThatLostLeases(t *testing.T) {
	t.Parallel()
	for name, maxExtension := range map[string]time.Duration{"past MaxExtension": 300 * time.Millisecond, "never renewed": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			var runs leaseRuns
			hold := make(chan struct{})
			defer close(hold)
			for i, body := range []string{"hangs", "other"} {
				rig.ask("XADD", rig.keys.Retry, "*", "body", body, "oid", fmt.Sprintf("%d-1", i+1), "lc", "2")
			}
			rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
				Concurrency: 3, VisibilityTimeout: 300 * time.Millisecond, MaxExtension: maxExtension, Backoff: leaseHaste,
			}, func(_ context.Context, m *xstreamq.Message[string]) error {
				if runs.add(m) == 1 && m.Body == "hangs" {
					<-hold
				}
				return nil
			})
			redistest.WaitFor(t, leasePatience, "the other message, and the hung one again", func() bool {
				return len(runs.of("other")) == 1 && len(runs.of("hangs")) == 2
			})
			if m := runs.of("other")[0]; m.LostLeases != 2 {
				t.Errorf("the other one was charged: %+v", m)
			}
		})
	}
}

// A retry stream at RetryMaxLen takes no more: failed messages stay in their backoff, the error is named, nothing is lost.
func TestFullRetryStreamKeepsFailedMessagesWaiting(t *testing.T) {
	t.Parallel()
	const messages, room = 20, 5
	rig := newLeaseRig(t)
	var runs leaseRuns
	hold := make(chan struct{})
	c := rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
		Concurrency: messages, RetryMaxLen: room, Backoff: leaseHaste,
	}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		if runs.add(m) == 1 {
			return errors.New("once")
		}
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return nil
	})
	ids := rig.publish(leaseBodies("m", messages)...)
	redistest.WaitFor(t, leasePatience, "a full retry stream", func() bool {
		return len(rig.entries(rig.keys.Retry)) == room && len(rig.waiting()) == messages-room
	})
	redistest.WaitFor(t, leasePatience, "the error in Health", func() bool {
		return leaseLoopError(c.Health(t.Context()), "promoter") != ""
	})
	for id, at := range rig.places() {
		if len(at) != 1 || at[0] != "retry" && at[0] != "delayed" {
			t.Errorf("%s is %v", id, at)
		}
	}
	if n := len(rig.places()); n != len(ids) || len(rig.entries(rig.keys.Retry)) != room {
		t.Errorf("%d of %d messages are left", n, len(ids))
	}
	close(hold)
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	for _, body := range leaseBodies("m", messages) {
		if all := runs.of(body); len(all) != 2 || all[1].Retries != 1 || all[1].LostLeases != 0 {
			t.Errorf("%q: %+v", body, all)
		}
	}
}

// leaseLoopError is the error of a loop's last round.
func leaseLoopError(h xstreamq.Health, loop string) string {
	for _, s := range h.Subscriptions {
		for _, l := range s.Loops {
			if l.Name == loop {
				return l.Error
			}
		}
	}
	return ""
}

// P5: unstarted messages that cannot be given back, since the retry stream is full, are not charged for that: not at Stop, and not
// when they waited a whole lease.
func TestFullRetryStreamChargesNoReleasedMessage(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	hold := make(chan struct{})
	handle := func(ctx context.Context, m *xstreamq.Message[string]) error {
		n := runs.add(m)
		if m.Body == "occupant" && n == 1 {
			return errors.New("once")
		}
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	opts := xstreamq.SubscribeOptions{
		VisibilityTimeout: time.Second, Concurrency: 1, Prefetch: -1, RetryMaxLen: 1, Backoff: leaseHaste,
	}
	rig.start(xstreamq.Config{}, opts, handle)
	rig.publish("occupant")
	redistest.WaitFor(t, leasePatience, "the retry stream's only place taken", func() bool { return len(runs.of("occupant")) == 2 })

	opts.Prefetch = 10
	second := rig.start(xstreamq.Config{}, opts, handle)
	bodies := leaseBodies("m", 5)
	rig.publish(bodies...)
	redistest.WaitFor(t, leasePatience, "all of them with a worker", func() bool { return len(rig.pending()) == 6 && runs.bodies() == 2 })
	redistest.WaitFor(t, leasePatience, "those without a handler given up after a lease", func() bool { return len(rig.waiting()) == 4 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := second.Stop(ctx); err != nil {
		t.Error(err)
	}
	for id, at := range rig.places() {
		if len(at) != 1 {
			t.Errorf("%s is %v", id, at)
		}
	}
	if n := len(rig.places()); n != 6 {
		t.Errorf("%d of 6 messages are left: %v", n, rig.places())
	}
	close(hold)
	redistest.WaitFor(t, leasePatience, "all handled", func() bool { return runs.bodies() == 6 })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	for _, body := range bodies {
		all := runs.of(body)
		if last := all[len(all)-1]; last.Attempt != 1 {
			t.Errorf("%q was charged: %+v", body, last)
		}
	}
}
