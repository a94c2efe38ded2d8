package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// brokenError is a classic mistake: a nil pointer in an error. Unwrap and Error panic.
type brokenError struct{ inner error }

func (e *brokenError) Error() string { return e.inner.Error() }
func (e *brokenError) Unwrap() error { return e.inner }

func returnsBrokenError() error {
	var e *brokenError
	return e
}

// What a handler returns, or how it ends otherwise, decides what becomes of its message (P2, P6).
func TestVerdicts(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	tests := []struct {
		name    string
		timeout time.Duration // HandlerTimeout
		handle  func(ctx context.Context) error
		settled string
		dead    map[string]string // fields of the dead letter
		err     []string          // parts of its error
	}{
		{"nil", 0, func(context.Context) error { return nil }, "acked", nil, nil},
		{"an error", 0, func(context.Context) error { return cause }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{"the cause"}},
		{"Discard", 0, func(context.Context) error { return xstreamq.Discard(cause) }, "discarded", nil, nil},
		{"Discard of nil", 0, func(context.Context) error { return xstreamq.Discard(nil) }, "discarded", nil, nil},
		{"a wrapped Discard", 0, func(context.Context) error {
			return fmt.Errorf("handler: %w", xstreamq.Discard(cause))
		}, "discarded", nil, nil},
		{"DeadLetter", 0, func(context.Context) error { return xstreamq.DeadLetter(cause) }, "dead rejected",
			map[string]string{"rc": "1", "reason": "rejected"}, []string{"the cause"}},
		{"DeadLetter of nil", 0, func(context.Context) error { return xstreamq.DeadLetter(nil) }, "dead rejected",
			map[string]string{"rc": "1", "reason": "rejected"}, []string{"no error given"}},
		{"a wrapped DeadLetter", 0, func(context.Context) error {
			return fmt.Errorf("order 7: %w", xstreamq.DeadLetter(cause))
		}, "dead rejected", map[string]string{"rc": "1", "reason": "rejected"}, []string{"order 7: the cause"}},
		{"a joined DeadLetter", 0, func(context.Context) error {
			return errors.Join(errors.New("also"), xstreamq.DeadLetter(cause))
		}, "dead rejected", map[string]string{"rc": "1", "reason": "rejected"}, []string{"also", "the cause"}},
		{"a panic", 0, func(context.Context) error { panic("boom") }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{"panicked: boom", "verdict_test.go"}},
		{"a panic with a verdict", 0, func(context.Context) error { panic(xstreamq.Discard(cause)) }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{"panicked: discarded: the cause", "verdict_test.go"}},
		{"a panic with nil", 0, func(context.Context) error { panic(nil) }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{"panicked", "verdict_test.go"}},
		{"runtime.Goexit", 0, func(context.Context) error { runtime.Goexit(); return nil }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{"runtime.Goexit", "verdict_test.go"}},
		{"an error that is a nil pointer", 0, func(context.Context) error { return returnsBrokenError() }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{"*xstreamq_test.brokenError whose methods panic"}},
		{"a panic with an error that is a nil pointer", 0, func(context.Context) error { panic(returnsBrokenError()) }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{"panicked"}},
		{"HandlerTimeout", 50 * time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }, "dead failed",
			map[string]string{"rc": "1", "reason": "failed"}, []string{xstreamq.ErrHandlerTimeout.Error()}},
		{"HandlerTimeout, then nil", 50 * time.Millisecond, func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil },
			"dead failed", map[string]string{"rc": "1", "reason": "failed"}, []string{xstreamq.ErrHandlerTimeout.Error()}},
		{"HandlerTimeout, then Release", 50 * time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return xstreamq.Release(cause) },
			"dead failed", map[string]string{"rc": "1", "reason": "failed"}, []string{xstreamq.ErrHandlerTimeout.Error(), "the cause"}},
		{"HandlerTimeout, then Discard", 50 * time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return xstreamq.Discard(cause) },
			"discarded", nil, nil},
		{"HandlerTimeout, then DeadLetter", 50 * time.Millisecond, func(ctx context.Context) error { <-ctx.Done(); return xstreamq.DeadLetter(cause) },
			"dead rejected", map[string]string{"rc": "1", "reason": "rejected"}, []string{"the cause"}},
		{"within HandlerTimeout", time.Hour, func(context.Context) error { return nil }, "acked", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			var tally leaseTally
			rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
				MaxRetries: xstreamq.NoRetries, HandlerTimeout: tt.timeout,
			}, func(ctx context.Context, _ *xstreamq.Message[string]) error { return tt.handle(ctx) })
			id := rig.publish("m")[0]
			want := map[string]int{"settled " + tt.settled: 1}
			redistest.WaitFor(t, leasePatience, "an outcome", func() bool { return len(tally.all("settled")) > 0 })
			if diff := cmp.Diff(want, tally.all("settled")); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			dead := rig.settled()
			if tt.dead == nil {
				if len(dead) != 0 {
					t.Errorf("dead letters: %v", dead)
				}
				return
			}
			tt.dead["body"], tt.dead["oid"] = "m", id
			wantLeaseFields(t, dead[0], tt.dead, "err", "at", "from", "by")
			for _, part := range tt.err {
				if !strings.Contains(dead[0].Fields["err"], part) {
					t.Errorf("the error lacks %q:\n%s", part, dead[0].Fields["err"])
				}
			}
		})
	}
}

// The context of a handler says why it ended.
func TestHandlerTimeoutIsTheCause(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	type seen struct {
		err, cause error
		deadline   bool
	}
	got := make(chan seen, 1)
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{HandlerTimeout: 50 * time.Millisecond},
		func(ctx context.Context, _ *xstreamq.Message[string]) error {
			_, deadline := ctx.Deadline()
			<-ctx.Done()
			got <- seen{ctx.Err(), context.Cause(ctx), deadline}
			return xstreamq.Discard(nil)
		})
	rig.publish("m")
	s := leaseTake(t, got, "the handler's end")
	if !errors.Is(s.err, context.DeadlineExceeded) || !errors.Is(s.cause, xstreamq.ErrHandlerTimeout) || !s.deadline {
		t.Errorf("%+v", s)
	}
}

// RetryAfter is a failure with a wait of its own; Release spends nothing and waits Backoff.Initial.
func TestVerdictsThatWait(t *testing.T) {
	t.Parallel()
	const century = 100 * 365 * 24 * time.Hour
	tests := []struct {
		name     string
		err      error
		from, to time.Duration // of the wait
		fields   map[string]string
	}{
		{"an error", errors.New("e"), 30 * time.Minute, time.Hour, map[string]string{"rc": "1", "err": "e"}},
		{"RetryAfter", xstreamq.RetryAfter(2*time.Hour, errors.New("e")), 2 * time.Hour, 2 * time.Hour,
			map[string]string{"rc": "1", "err": "retry after 2h0m0s: e"}},
		{"a wrapped RetryAfter", fmt.Errorf("w: %w", xstreamq.RetryAfter(3*time.Hour, errors.New("e"))), 3 * time.Hour, 3 * time.Hour,
			map[string]string{"rc": "1", "err": "w: retry after 3h0m0s: e"}},
		{"RetryAfter the longest", xstreamq.RetryAfter(math.MaxInt64, errors.New("e")), century, century,
			map[string]string{"rc": "1", "err": "retry after 2562047h47m16.854775807s: e"}},
		{"Release", xstreamq.Release(errors.New("e")), 30 * time.Minute, time.Hour, map[string]string{"err": "released: e"}},
		{"Release of nil", xstreamq.Release(nil), 30 * time.Minute, time.Hour, map[string]string{"err": "released: no error given"}},
		{"a wrapped Release", fmt.Errorf("w: %w", xstreamq.Release(errors.New("e"))), 30 * time.Minute, time.Hour,
			map[string]string{"err": "w: released: e"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{Backoff: xstreamq.Backoff{Initial: time.Hour}},
				func(context.Context, *xstreamq.Message[string]) error { return tt.err })
			before := rig.now()
			id := rig.publish("m")[0]
			redistest.WaitFor(t, leasePatience, "a waiting message", func() bool { return len(rig.waiting()) == 1 })
			after := rig.now()
			w := rig.waiting()[0]
			if w.Due.Before(before.Add(tt.from)) || w.Due.After(after.Add(tt.to)) {
				t.Errorf("it waits until %v; published at %v", w.Due, before)
			}
			tt.fields["body"], tt.fields["oid"] = "m", id
			wantLeaseFields(t, w, tt.fields)
			if diff := cmp.Diff(map[string][]string{id: {"delayed"}}, rig.places()); diff != "" {
				t.Errorf("where it is (-want +got):\n%s", diff)
			}
		})
	}
}

// RetryAfter with zero or less retries at once.
func TestRetryAfterNothingRetriesAtOnce(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{Backoff: xstreamq.Backoff{Initial: time.Hour}},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			switch runs.add(m) {
			case 1:
				return xstreamq.RetryAfter(0, errors.New("zero"))
			case 2:
				return xstreamq.RetryAfter(math.MinInt64, errors.New("less"))
			}
			return nil
		})
	rig.publish("m")
	redistest.WaitFor(t, leasePatience, "a third run", func() bool { return len(runs.of("m")) == 3 })
	rig.settled()
}

// A failing handler's error travels with its message, but bounded and as valid UTF-8.
func TestErrorTextIsBoundedAndValid(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"ascii": strings.Repeat("x", 10_000), "two bytes": "x" + strings.Repeat("é", 5_000), "four bytes": "xyz" + strings.Repeat("😀", 5_000),
		"invalid": strings.Repeat("\xff\xfe", 5_000), "NUL": strings.Repeat("\x00", 5_000), "mixed": strings.Repeat("a\xffé", 5_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{MaxRetries: xstreamq.NoRetries},
				func(context.Context, *xstreamq.Message[string]) error { return errors.New(text) })
			rig.publish("m")
			redistest.WaitFor(t, leasePatience, "a dead letter", func() bool { return len(rig.dead()) == 1 })
			got := rig.dead()[0].Fields["err"]
			if len(got) > 2048 || !utf8.ValidString(got) || got == "" {
				t.Errorf("%d bytes, valid: %v: %.40q", len(got), utf8.ValidString(got), got)
			}
			if utf8.ValidString(text) && (len(got) < 2040 || !strings.HasPrefix(text, strings.TrimRight(got, "?"))) {
				t.Errorf("%d bytes are not the beginning of the error: %.40q", len(got), got)
			}
		})
	}
}

// A handler that panics or calls runtime.Goexit costs no worker, and Stop still ends.
func TestHandlersThatEndOddlyCostNoWorker(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	c := rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{Concurrency: 1, MaxRetries: xstreamq.NoRetries},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			runs.add(m)
			switch {
			case strings.HasPrefix(m.Body, "panic"):
				panic(m.Body)
			case strings.HasPrefix(m.Body, "exit"):
				runtime.Goexit()
			}
			return nil
		})
	rig.publish(leaseBodies("panic", 5)...)
	rig.publish(leaseBodies("exit", 5)...)
	rig.publish("fine")
	redistest.WaitFor(t, leasePatience, "the message behind them", func() bool { return runs.bodies() == 11 })
	if dead := rig.settled(); len(dead) != 10 {
		t.Errorf("%d dead letters, not 10", len(dead))
	}
	ctx, cancel := context.WithTimeout(t.Context(), leasePatience)
	defer cancel()
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// A Backoff.Func gets the number of the attempt and the error; one that panics costs its message a second, and nobody else
// anything.
func TestBackoffFuncOfTheUser(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	var runs leaseRuns
	var calls leaseTally
	failure := errors.New("failure")
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
		Backoff: xstreamq.Backoff{Func: func(attempt int, err error) time.Duration {
			if errors.Is(err, failure) {
				calls.add(fmt.Sprintf("call %d", attempt), 1)
				return 0
			}
			panic("no backoff for this")
		}},
	}, func(_ context.Context, m *xstreamq.Message[string]) error {
		n := runs.add(m)
		switch {
		case m.Body == "fails" && n <= 3:
			return failure
		case m.Body == "fails oddly" && n == 1:
			return errors.New("odd")
		case m.Body == "released" && n == 1:
			return xstreamq.Release(nil)
		}
		return nil
	})
	rig.publish("fails", "fails oddly", "released", "fine")
	redistest.WaitFor(t, leasePatience, "all runs", func() bool {
		return len(runs.of("fails")) == 4 && len(runs.of("fails oddly")) == 2 && len(runs.of("released")) == 2 && len(runs.of("fine")) == 1
	})
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if diff := cmp.Diff(map[string]int{"call 1": 1, "call 2": 1, "call 3": 1}, calls.all("call")); diff != "" {
		t.Errorf("calls for the message that fails (-want +got):\n%s", diff)
	}
}
