package xstreamq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Purge deletes what it is given, counts what it found, and touches nothing else.
func TestPurge(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	ids := r.bury(1, 1200)
	n, err := r.client.Purge(t.Context(), "q", "g", append([]string{"7-7", "5-0", "5-0", "0005-0"}, ids[:1100]...)...)
	if n != 1100 || err != nil {
		t.Errorf("%d purged, %v", n, err)
	}
	if diff := cmp.Diff(deadNumbers(1101, 1200, 1), r.originals(r.keys.DLQ)); diff != "" {
		t.Errorf("left: -want +got:\n%s", diff)
	}
	for _, again := range [][]string{{"5-0"}, nil} {
		if n, err := r.client.Purge(t.Context(), "q", "g", again...); n != 0 || err != nil {
			t.Errorf("%d purged, %v", n, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := r.client.Purge(ctx, "q", "g", ids...); n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %d, %v", n, err)
	}
}

// The filter chooses, the limit takes the oldest of those, a dry run only counts.
func TestPurgeAllDeletesWhatIsChosen(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 1000)
	for _, s := range []struct {
		name       string
		o          xstreamq.PurgeAllOptions
		want, left int
	}{
		{"dry run with a limit", xstreamq.PurgeAllOptions{Filter: deadEvery(10), Limit: 3, DryRun: true}, 3, 1000},
		{"dry run", xstreamq.PurgeAllOptions{Filter: deadEvery(10), DryRun: true}, 100, 1000},
		{"limit", xstreamq.PurgeAllOptions{Filter: deadEvery(10), Limit: 3}, 3, 997},
		{"filter", xstreamq.PurgeAllOptions{Filter: deadEvery(10)}, 97, 900},
		{"filter again", xstreamq.PurgeAllOptions{Filter: deadEvery(10)}, 0, 900},
		{"oldest", xstreamq.PurgeAllOptions{Limit: 890}, 890, 10},
		{"all", xstreamq.PurgeAllOptions{}, 10, 0},
		{"none", xstreamq.PurgeAllOptions{}, 0, 0},
	} {
		before, looked, purged := r.len(r.keys.DLQ), 0, 0
		s.o.Progress = func(l, n int) {
			if l < looked || n < purged {
				t.Errorf("%s: progress from %d, %d to %d, %d", s.name, looked, purged, l, n)
			}
			looked, purged = l, n
		}
		n, err := r.client.PurgeAll(t.Context(), "q", "g", s.o)
		if n != s.want || err != nil || purged != n {
			t.Errorf("%s: %d, %v, progress %d; want %d", s.name, n, err, purged, s.want)
		}
		if left := r.len(r.keys.DLQ); left != s.left {
			t.Errorf("%s: %d dead letters are left, want %d", s.name, left, s.left)
		}
		if s.o.Limit == 0 && looked != before {
			t.Errorf("%s: looked at %d of %d", s.name, looked, before)
		}
		if s.name == "oldest" {
			if diff := cmp.Diff("989-1", r.originals(r.keys.DLQ)[0]); diff != "" {
				t.Errorf("what is left begins with: -want +got:\n%s", diff)
			}
		}
	}
}

// What dies while it runs stays, and so does the rest when its context ends.
func TestPurgeAllEnds(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 300)
	next := 301
	n, err := r.client.PurgeAll(t.Context(), "q", "g", xstreamq.PurgeAllOptions{Progress: func(int, int) {
		r.bury(next, next+199)
		next += 200
	}})
	if left := r.len(r.keys.DLQ); n != 300 || err != nil || left != next-301 {
		t.Errorf("%d purged, %v, %d left", n, err, left)
	}
	before := r.len(r.keys.DLQ)
	ctx, cancel := context.WithCancel(t.Context())
	n, err = r.client.PurgeAll(ctx, "q", "g", xstreamq.PurgeAllOptions{Progress: func(int, int) { cancel() }})
	if left := r.len(r.keys.DLQ); n == 0 || left != before-n || !errors.Is(err, context.Canceled) {
		t.Errorf("%d purged of %d, %v, %d left", n, before, err, left)
	}
}

// Whatever else is called, and whatever workers and their loops do: dead letters stay, unless they are redriven or purged.
func TestNothingButPurgeDeletesADeadLetter(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	ids := r.bury(1, 50)
	r.buryFields("51-0", "oid", "51-1", "reason", "body-lost")
	c, q := r.open(xstreamq.Config{CompactEvery: 20 * time.Millisecond})
	var runs leaseRuns
	deadSubscribe(t, q, "g", xstreamq.SubscribeOptions{MaxRetries: 1, Dedupe: time.Minute, VisibilityTimeout: 200 * time.Millisecond, RetryMaxLen: 10},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			if runs.add(m) == 1 {
				return errors.New("once more")
			}
			return nil
		})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if _, err := q.Publish(t.Context(), "new"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Publish(t.Context(), "late", xstreamq.WithDelay(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, leasePatience, "everything but the dead letters finished and trimmed", func() bool {
		return len(r.places()) == 51 && len(runs.of("new")) == 301 && len(runs.of("late")) == 2 && r.len(r.keys.Queue) < 300
	})
	ctx := t.Context()
	if _, err := r.deadIDs(xstreamq.DeadFilter{}); err != nil {
		t.Error(err)
	}
	if _, err := c.DeadLetterByID(ctx, "q", "g", "1-0"); err != nil {
		t.Error(err)
	}
	if _, err := c.Redrive(ctx, "q", "g", []string{"51-0"}, xstreamq.RedriveOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := c.RedriveAll(ctx, "q", "g", xstreamq.RedriveAllOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	if _, err := c.PurgeAll(ctx, "q", "g", xstreamq.PurgeAllOptions{DryRun: true}); err != nil {
		t.Error(err)
	}
	if _, err := c.Depth(ctx, "q", "g"); err != nil {
		t.Error(err)
	}
	if _, err := c.Lag(ctx, "q", "g"); err != nil {
		t.Error(err)
	}
	if _, err := c.Compact(ctx, "q"); err != nil {
		t.Error(err)
	}
	for _, place := range []xstreamq.Place{xstreamq.InQueue, xstreamq.InRetry, xstreamq.InDelayed, xstreamq.InBackoff, xstreamq.InDLQ} {
		if _, err := c.Peek(ctx, "q", "g", xstreamq.PeekOptions{From: place, Count: 100}); err != nil {
			t.Error(err)
		}
	}
	if err := c.Stop(ctx); err != nil {
		t.Error(err)
	}
	if err := c.Forget(ctx, "q", "g", xstreamq.ForgetOptions{Force: true}); err == nil {
		t.Error("a group with dead letters was forgotten")
	}
	if diff := cmp.Diff(deadNumbers(1, 51, 1), r.originals(r.keys.DLQ)); diff != "" {
		t.Errorf("dead: -want +got:\n%s", diff)
	}
	if n, err := r.client.Purge(ctx, "q", "g", append(ids, "51-0")...); n != 51 || err != nil {
		t.Errorf("%d purged, %v", n, err)
	}
}
