package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Middleware wraps the handler: the first one is outermost, what they put into the context arrives, and next returns what the
// handler returned.
func TestMiddlewareOrderContextAndErrors(t *testing.T) {
	t.Parallel()
	type key string
	rig := newLeaseRig(t)
	var mu sync.Mutex
	var trace []string
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		trace = append(trace, fmt.Sprintf(format, args...))
	}
	wrap := func(name string) xstreamq.Middleware {
		return func(next func(context.Context, *xstreamq.Delivery) error) func(context.Context, *xstreamq.Delivery) error {
			return func(ctx context.Context, d *xstreamq.Delivery) error {
				say("%s begins %s %s/%s attempt %d, %s", name, d.Raw, d.Queue, d.Group, d.Attempt, d.Header["h"])
				err := next(context.WithValue(ctx, key(name), name+"'s value"), d)
				say("%s got: %v", name, err)
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{Middleware: []xstreamq.Middleware{wrap("outer"), wrap("inner")}},
		func(ctx context.Context, m *xstreamq.Message[string]) error {
			say("handler of %s sees %v and %v", m.Body, ctx.Value(key("outer")), ctx.Value(key("inner")))
			return xstreamq.DeadLetter(errors.New("no"))
		})
	rig.ask("XADD", rig.keys.Queue, "*", "body", "m", "h:h", "v")
	redistest.WaitFor(t, leasePatience, "a dead letter", func() bool { return len(rig.dead()) == 1 })
	if e := rig.dead()[0].Fields; e["err"] != "outer: inner: no" || e["reason"] != "rejected" {
		t.Errorf("the dead letter: %v", e)
	}
	want := []string{
		"outer begins m q/g attempt 1, v",
		"inner begins m q/g attempt 1, v",
		"handler of m sees outer's value and inner's value",
		"inner got: no",
		"outer got: inner: no",
	}
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff(want, trace); diff != "" {
		t.Errorf("the order of things (-want +got):\n%s", diff)
	}
}

// What the outermost middleware returns is the verdict, whether or not it calls the handler; one that panics or passes on a
// strange context is a failure.
func TestMiddlewareDecides(t *testing.T) {
	t.Parallel()
	type handler = func(context.Context, *xstreamq.Delivery) error
	tests := []struct {
		name    string
		wrap    xstreamq.Middleware
		settled string
		runs    int
	}{
		{"it swallows the error", func(next handler) handler {
			return func(ctx context.Context, d *xstreamq.Delivery) error { _ = next(ctx, d); return nil }
		}, "settled acked", 1},
		{"it does not call the handler", func(handler) handler {
			return func(context.Context, *xstreamq.Delivery) error { return xstreamq.Discard(nil) }
		}, "settled discarded", 0},
		{"it panics", func(handler) handler {
			return func(context.Context, *xstreamq.Delivery) error { panic("middleware") }
		}, "settled dead failed", 0},
		{"it passes on a context of its own", func(next handler) handler {
			return func(_ context.Context, d *xstreamq.Delivery) error { return next(context.Background(), d) }
		}, "settled dead failed", 0},
		{"it is no handler", func(handler) handler { return nil }, "settled dead failed", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rig := newLeaseRig(t)
			var runs leaseRuns
			var tally leaseTally
			rig.start(xstreamq.Config{Observer: tally.observer()}, xstreamq.SubscribeOptions{
				MaxRetries: xstreamq.NoRetries, Middleware: []xstreamq.Middleware{tt.wrap},
			}, func(_ context.Context, m *xstreamq.Message[string]) error {
				runs.add(m)
				return errors.New("the handler's")
			})
			rig.publish("m")
			redistest.WaitFor(t, leasePatience, "an outcome", func() bool { return len(tally.all("settled")) > 0 })
			if diff := cmp.Diff(map[string]int{tt.settled: 1}, tally.all("settled")); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if n := len(runs.of("m")); n != tt.runs {
				t.Errorf("the handler ran %d times", n)
			}
		})
	}
}

// What the Observer is told adds up: every message that was published is accounted for by exactly one final outcome.
func TestObserverEventsAddUp(t *testing.T) {
	t.Parallel()
	const each = 20
	rig := newLeaseRig(t)
	var runs leaseRuns
	var tally leaseTally
	c, q := rig.open(xstreamq.Config{Observer: tally.observer()})
	_, err := q.Subscribe("g", func(ctx context.Context, m *xstreamq.Message[string]) error {
		n := runs.add(m)
		word, _, _ := strings.Cut(m.Body, " ")
		switch {
		case word == "fails":
			return errors.New("always")
		case word == "rejected":
			return xstreamq.DeadLetter(errors.New("no"))
		case word == "discarded":
			return xstreamq.Discard(errors.New("old"))
		case n == 1 && word == "twice":
			return errors.New("once")
		case n == 1 && word == "released":
			return xstreamq.Release(errors.New("not now"))
		case n == 1 && word == "overruns":
			return loseLease(ctx)
		}
		return nil
	}, xstreamq.SubscribeOptions{
		Concurrency: 50, MaxRetries: 1, Backoff: leaseHaste, VisibilityTimeout: 2 * time.Second, MaxExtension: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var batch []xstreamq.Outgoing[string]
	for _, word := range []string{"fine", "fails", "rejected", "discarded", "twice", "released", "overruns", "later"} {
		for _, body := range leaseBodies(word, each) {
			m := xstreamq.Outgoing[string]{Body: body}
			if word == "later" {
				m.Options = []xstreamq.PublishOption{xstreamq.WithDelay(100 * time.Millisecond)}
			}
			batch = append(batch, m)
		}
	}
	for _, res := range q.PublishBatch(t.Context(), batch) {
		if res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	rig.ask("XADD", rig.keys.Queue, "*", "stranger", "without a body")
	const (
		wantAcked = 5 * each // fine, twice, released, overruns, later
		wantDead  = 2*each + 1
	)
	redistest.WaitFor(t, leasePatience, "a final outcome of every message", func() bool {
		return tally.of("settled acked") == wantAcked && tally.of("settled lost") == each
	})
	if dead := rig.settled(); len(dead) != wantDead {
		t.Errorf("%d dead letters, not %d", len(dead), wantDead)
	}
	want := map[string]int{
		"published q":           8 * each,
		"settled acked":         wantAcked,
		"settled discarded":     each,
		"settled retried":       2 * each, // the first runs of "fails" and "twice"
		"settled released":      each,
		"settled lost":          each, // the overrunners' first runs
		"settled dead failed":   each,
		"settled dead rejected": each,
		"settled dead no-body":  1,
		"swept recovered":       each,
		"promoted queued":       each,
		"promoted retried":      3 * each,
		"handled acked":         wantAcked,
		"handled discarded":     each,
		"handled retried":       4 * each, // both runs of "fails", the first ones of "twice" and "overruns"
		"handled released":      each,
		"handled dead":          each + 1,
	}
	if diff := cmp.Diff(want, tally.all("published", "settled", "swept", "promoted", "handled")); diff != "" {
		t.Errorf("what the observer was told (-want +got):\n%s", diff)
	}
}

// P6: OnDeadLetter gets what the dead-letter stream holds, whatever made the dead letter; one that panics harms nobody.
func TestOnDeadLetterIsToldEverything(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	told := make(chan xstreamq.DeadMessage, 10)
	c, q := rig.open(xstreamq.Config{ConsumerName: "me"})
	_, err := q.Subscribe("g", func(ctx context.Context, m *xstreamq.Message[string]) error {
		switch m.Body {
		case "fails":
			return errors.New("it failed")
		case "is lost":
			return loseLease(ctx)
		}
		return xstreamq.DeadLetter(errors.New("refused"))
	}, xstreamq.SubscribeOptions{
		MaxRetries: 1, MaxLostLeases: xstreamq.NoRetries, VisibilityTimeout: time.Second, MaxExtension: -1, Backoff: leaseHaste,
		OnDeadLetter: func(ctx context.Context, d xstreamq.DeadMessage) {
			if _, ok := ctx.Deadline(); !ok || ctx.Err() != nil {
				t.Errorf("OnDeadLetter's context: %v, with a deadline: %v", ctx.Err(), ok)
			}
			told <- d
			panic("OnDeadLetter")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := rig.now()
	ids := map[xstreamq.Reason]string{}
	for reason, body := range map[xstreamq.Reason]string{
		xstreamq.Failed: "fails", xstreamq.LostLease: "is lost", xstreamq.Rejected: "is refused",
	} {
		if ids[reason], err = q.Publish(t.Context(), body, xstreamq.WithHeader("h", "v")); err != nil {
			t.Fatal(err)
		}
	}
	reply := rig.ask("XADD", rig.keys.Queue, "*", "h:h", "v")
	if ids[xstreamq.NoBody], err = reply.ToString(); err != nil {
		t.Fatal(err)
	}

	want := map[xstreamq.Reason]xstreamq.DeadMessage{
		xstreamq.Failed:    {Body: []byte("fails"), Error: "it failed", Failures: 2},
		xstreamq.LostLease: {Body: []byte("is lost"), Error: "lease lost by me-", LostLeases: 1},
		xstreamq.Rejected:  {Body: []byte("is refused"), Error: "refused", Failures: 1},
		xstreamq.NoBody:    {},
	}
	for range len(want) {
		select {
		case got := <-told:
			wantDeadMessage(t, rig, got, want[got.Reason], ids[got.Reason], before)
			delete(want, got.Reason)
		case <-time.After(leasePatience):
			t.Fatalf("OnDeadLetter was not told of %v", want)
		}
	}
	if len(want) != 0 || len(told) != 0 {
		t.Errorf("not told: %v; told too much: %d", want, len(told))
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// wantDeadMessage compares what OnDeadLetter got with what was expected and with the entry it is about.
func wantDeadMessage(t *testing.T, rig *leaseRig, got, want xstreamq.DeadMessage, id string, before time.Time) {
	t.Helper()
	want.Queue, want.Group, want.OriginalID = "q", "g", id
	want.Header = map[string]string{"h": "v"}
	want.ID, want.Reason, want.From, want.By, want.At = got.ID, got.Reason, got.From, got.By, got.At
	if want.Error != "" && strings.HasSuffix(want.Error, "-") && strings.HasPrefix(got.Error, want.Error) {
		want.Error = got.Error // the rest of a consumer's name is random
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: OnDeadLetter was told (-want +got):\n%s", got.Reason, diff)
	}
	if got.At.Before(before) || got.At.After(rig.now()) || !strings.HasPrefix(got.By, "me-") {
		t.Errorf("%s: at %v by %q", got.Reason, got.At, got.By)
	}
	if fromQueue := got.From == id; fromQueue != (got.Reason != xstreamq.Failed) {
		t.Errorf("%s: published as %s, it died as %s", got.Reason, id, got.From)
	}
	for _, e := range rig.dead() {
		if e.ID == got.ID && e.Fields["oid"] == id && e.Fields["from"] == got.From && e.Fields["by"] == got.By {
			return
		}
	}
	t.Errorf("%s: no dead letter is %+v", got.Reason, got)
}
