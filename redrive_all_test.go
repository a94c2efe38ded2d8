package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// deadEvery chooses every nth of those that bury wrote.
func deadEvery(n int) xstreamq.DeadFilter {
	return xstreamq.DeadFilter{Match: func(d *xstreamq.DeadMessage) bool {
		number, err := strconv.Atoi(strings.TrimSuffix(d.ID, "-0"))
		return err == nil && number%n == 0
	}}
}

// deadSteps returns the ids first-0, first+step-0, ... up to last-0.
func deadSteps(first, last, step int) (ids []string) {
	for n := first; n <= last; n += step {
		ids = append(ids, strconv.Itoa(n)+"-0")
	}
	return ids
}

// The filter chooses, the limit takes the oldest of those, a dry run only says so, and what cannot be redriven is listed and stays.
func TestRedriveAllTakesWhatIsChosen(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 1000)
	r.buryFields("1010-0", "oid", "1010-1", "reason", "body-lost")
	r.buryFields("1020-0", "x", "y", "oid", "1020-1")
	stays := []xstreamq.Unredrivable{{ID: "1010-0", Reason: "body-lost"}, {ID: "1020-0", Reason: "no-body"}}
	steps := []struct {
		name string
		o    xstreamq.RedriveAllOptions
		want xstreamq.RedriveResult
		left int // dead letters
	}{
		{"dry run with a limit", xstreamq.RedriveAllOptions{Filter: deadEvery(10), Limit: 3, DryRun: true, Rate: 1, Canary: 2},
			xstreamq.RedriveResult{Redriven: deadSteps(10, 30, 10)}, 1002},
		{"limit", xstreamq.RedriveAllOptions{Filter: deadEvery(10), Limit: 3},
			xstreamq.RedriveResult{Redriven: deadSteps(10, 30, 10)}, 999},
		{"dry run", xstreamq.RedriveAllOptions{Filter: deadEvery(10), DryRun: true},
			xstreamq.RedriveResult{Redriven: deadSteps(40, 1000, 10), Unredrivable: stays}, 999},
		{"filter", xstreamq.RedriveAllOptions{Filter: deadEvery(10)},
			xstreamq.RedriveResult{Redriven: deadSteps(40, 1000, 10), Unredrivable: stays}, 902},
		{"filter again", xstreamq.RedriveAllOptions{Filter: deadEvery(10)}, xstreamq.RedriveResult{Unredrivable: stays}, 902},
		{"limit that is more than there are", xstreamq.RedriveAllOptions{Filter: deadEvery(2), Limit: 5000},
			xstreamq.RedriveResult{Redriven: slices.DeleteFunc(deadSteps(2, 1000, 2), func(id string) bool { return strings.HasSuffix(id, "0-0") }),
				Unredrivable: stays}, 502},
		{"all", xstreamq.RedriveAllOptions{}, xstreamq.RedriveResult{Redriven: deadSteps(1, 999, 2), Unredrivable: stays}, 2},
	}
	for _, s := range steps {
		looked, redriven := 0, 0
		s.o.Progress = func(l, n int) {
			if l < looked || n < redriven {
				t.Errorf("%s: progress from %d, %d to %d, %d", s.name, looked, redriven, l, n)
			}
			looked, redriven = l, n
		}
		var told xstreamq.RedriveResult
		s.o.Each = func(id, why string) {
			if why == "" {
				told.Redriven = append(told.Redriven, id)
			} else {
				told.Unredrivable = append(told.Unredrivable, xstreamq.Unredrivable{ID: id, Reason: why})
			}
		}
		before := r.len(r.keys.DLQ)
		got, err := r.client.RedriveAll(t.Context(), "q", "g", s.o)
		if diff := cmp.Diff(s.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%s", s.name, err, diff)
		}
		if diff := cmp.Diff(got, told); diff != "" {
			t.Errorf("%s: -result +told of each:\n%s", s.name, diff)
		}
		if n := r.len(r.keys.DLQ); n != s.left {
			t.Errorf("%s: %d dead letters are left, want %d", s.name, n, s.left)
		}
		if redriven != len(got.Redriven) || looked > before || s.o.Limit == 0 && looked != before {
			t.Errorf("%s: the last progress was %d, %d", s.name, looked, redriven)
		}
	}
	if diff := cmp.Diff(deadNumbers(1, 1000, 1), r.originals(r.keys.Retry)); diff != "" {
		t.Errorf("to be retried: -want +got:\n%s", diff)
	}
}

// What only its own group can read is not published anew, and a dry run knows it.
func TestRedriveAllToQueue(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 2)
	r.buryFields("3-0", "body", "a", "xq:packed", "3:h:k1:v", "oid", "3-1")
	o := xstreamq.RedriveAllOptions{RedriveOptions: xstreamq.RedriveOptions{ToQueue: true}, DryRun: true}
	promised, err := r.client.RedriveAll(t.Context(), "q", "g", o)
	if err != nil || len(promised.Redriven) != 2 || len(promised.Unredrivable) != 1 {
		t.Errorf("%v, %v", promised, err)
	}
	o.DryRun = false
	got, err := r.client.RedriveAll(t.Context(), "q", "g", o)
	if diff := cmp.Diff(promised, got); diff != "" || err != nil {
		t.Errorf("%v, promised and done:\n%s", err, diff)
	}
	if diff := cmp.Diff([][]string{{"body", `{"n":1}`}, {"body", `{"n":2}`}}, r.raw(r.keys.Queue)); diff != "" || r.len(r.keys.DLQ) != 1 {
		t.Errorf("published: -want +got:\n%s", diff)
	}
}

// What dies while it runs is left for the next time: it ends.
func TestRedriveAllLeavesWhatDiesMeanwhile(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 300)
	next := 301
	got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Progress: func(int, int) {
		r.bury(next, next+49)
		next += 50
	}})
	if diff := cmp.Diff(deadSteps(1, 300, 1), got.Redriven); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if n := r.len(r.keys.DLQ); n != next-301 {
		t.Errorf("%d dead letters are left of %d", n, next-301)
	}
}

// With handlers that go on failing it ends too, and each message is dead again, once.
func TestRedriveAllWhileHandlersFail(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	const n = 1500
	r.bury(1, n)
	r.start(xstreamq.Config{}, xstreamq.SubscribeOptions{MaxRetries: xstreamq.NoRetries}, func(context.Context, *xstreamq.Message[string]) error {
		return errors.New("still broken")
	})
	got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{})
	if diff := cmp.Diff(deadSteps(1, n, 1), got.Redriven); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	redistest.WaitFor(t, leasePatience, "all of them dead again", func() bool { return r.len(r.keys.DLQ) == n })
	if diff := cmp.Diff(deadNumbers(1, n, 1), r.originals(r.keys.DLQ)); diff != "" {
		t.Errorf("dead: -want +got:\n%s", diff)
	}
	for _, e := range r.dead() {
		if e.Fields["rc"] != "1" || e.Fields["lc"] != "" || e.Fields["err"] != "still broken" {
			t.Fatalf("a new death should have a new history: %v", e.Fields)
		}
	}
}

// Several at once, from several processes' clients, while workers handle: each message runs once.
func TestRedriveAllsAtOnceRedriveOnce(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	const n = 3000
	r.bury(1, n)
	var runs leaseRuns
	r.start(xstreamq.Config{}, xstreamq.SubscribeOptions{}, func(_ context.Context, m *xstreamq.Message[string]) error {
		runs.add(m)
		return nil
	})
	var wg sync.WaitGroup
	results := make([]xstreamq.RedriveResult, 3)
	for i := range results {
		c, _ := r.open(xstreamq.Config{})
		wg.Go(func() {
			var err error
			if results[i], err = c.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var all []string
	for _, result := range results {
		all = append(all, result.Redriven...)
		if len(result.Unredrivable) > 0 {
			t.Errorf("what another took is listed: %v", result.Unredrivable[0])
		}
	}
	slices.Sort(all)
	if diff := cmp.Diff(deadNumbers(1, n, 0), all); diff != "" {
		t.Errorf("redriven: -want +got:\n%s", diff)
	}
	redistest.WaitFor(t, leasePatience, "everything finished", func() bool { return runs.bodies() == n && len(r.places()) == 0 })
	for i := range n {
		if got := runs.of(fmt.Sprintf(`{"n":%d}`, i+1)); len(got) != 1 {
			t.Fatalf("message %d ran %d times", i+1, len(got))
		}
	}
}

// The end of the context in the middle: what was done is returned, the rest is where it was, and another call goes on.
func TestRedriveAllStoppedInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 1000)
	ctx, cancel := context.WithCancel(t.Context())
	got, err := r.client.RedriveAll(ctx, "q", "g", xstreamq.RedriveAllOptions{Progress: func(_, redriven int) {
		if redriven >= 300 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || len(got.Redriven) < 300 || len(got.Redriven) > 400 {
		t.Errorf("%d redriven, %v", len(got.Redriven), err)
	}
	if moved, left := r.len(r.keys.Retry), r.len(r.keys.DLQ); moved != len(got.Redriven) || left != 1000-moved {
		t.Errorf("%d moved, %d left, %d reported", moved, left, len(got.Redriven))
	}
	rest, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{})
	if err != nil || len(got.Redriven)+len(rest.Redriven) != 1000 {
		t.Errorf("%d, then %d, %v", len(got.Redriven), len(rest.Redriven), err)
	}
	if diff := cmp.Diff(deadNumbers(1, 1000, 1), r.originals(r.keys.Retry)); diff != "" {
		t.Errorf("to be retried: -want +got:\n%s", diff)
	}
}

// A rate is kept: never more than a tenth of a second's worth at once, and pauses in between, which the context can end.
func TestRedriveAllKeepsItsRate(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 81)
	last := 0
	begun := time.Now()
	got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Rate: 200, Limit: 80, Progress: func(_, redriven int) {
		if redriven > last+20 {
			t.Errorf("%d at once", redriven-last)
		}
		last = redriven
	}})
	// Four times 20, with three pauses of 100 ms.
	if took := time.Since(begun); err != nil || len(got.Redriven) != 80 || took < 300*time.Millisecond {
		t.Errorf("%d redriven in %v, %v", len(got.Redriven), took, err)
	}
	if got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Rate: math.Inf(1)}); err != nil || len(got.Redriven) != 1 {
		t.Errorf("without bound: %v, %v", got, err)
	}
	r.bury(100, 102)
	ctx, cancel := context.WithCancel(t.Context())
	got, err = r.client.RedriveAll(ctx, "q", "g", xstreamq.RedriveAllOptions{Rate: math.SmallestNonzeroFloat64, Progress: func(_, redriven int) {
		cancel()
	}})
	if !errors.Is(err, context.Canceled) || len(got.Redriven) != 1 {
		t.Errorf("stopped in a pause: %v, %v", got, err)
	}
	if _, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Rate: math.NaN()}); !errors.Is(err, xstreamq.ErrInvalidConfig) {
		t.Errorf("a rate that is no number: %v", err)
	}
}

// Who is told to stop while an answer is on its way still says all that was done.
func TestCancelledChangesAreCounted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(context.Context, *xstreamq.Client) (int, error){
		"redrive": func(ctx context.Context, c *xstreamq.Client) (int, error) {
			got, err := c.RedriveAll(ctx, "q", "g", xstreamq.RedriveAllOptions{})
			return len(got.Redriven), err
		},
		"purge": func(ctx context.Context, c *xstreamq.Client) (int, error) {
			return c.PurgeAll(ctx, "q", "g", xstreamq.PurgeAllOptions{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newDeadRig(t)
			const n = 1500
			r.bury(1, n)
			proxy := redistest.NewProxy(t, r.url)
			c, err := xstreamq.Open(proxy.URL(), xstreamq.Config{KeyPrefix: r.prefix})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			proxy.Delay(200 * time.Millisecond)
			ctx, cancel := context.WithCancel(t.Context())
			var done int
			ended := make(chan error)
			go func() {
				n, err := change(ctx, c)
				done = n
				ended <- err
			}()
			redistest.WaitFor(t, 10*time.Second, "a dead letter to go", func() bool { return r.len(r.keys.DLQ) < n })
			cancel()
			err = <-ended
			if gone := n - r.len(r.keys.DLQ); !errors.Is(err, context.Canceled) || done != gone || done == n {
				t.Errorf("%d of %d, %v", done, gone, err)
			}
		})
	}
}

// A message with thousands of fields dies, is redriven, and still has its headers.
func TestRedriveOfManyFields(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	fields := []string{"XADD", r.keys.Queue, "*", "body", "a"}
	for i := range 4100 {
		fields = append(fields, fmt.Sprintf("f%d", i), "v")
	}
	m := r.ask(append(fields, "h:last", "one")...)
	id, err := m.ToString()
	if err != nil {
		t.Fatal(err)
	}
	handled := make(chan xstreamq.Delivery, 1)
	dead := make(chan xstreamq.DeadMessage, 2)
	first := true
	r.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
		Concurrency: 1, OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
	}, func(_ context.Context, m *xstreamq.Message[string]) error {
		if first {
			first = false
			return xstreamq.DeadLetter(errors.New("not yet"))
		}
		handled <- m.Delivery
		return nil
	})
	d := leaseTake(t, dead, "the dead letter")
	if got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{}); err != nil || len(got.Redriven) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	again := leaseTake(t, handled, "the redriven message")
	if again.OriginalID != id || string(again.Raw) != "a" || again.Header["last"] != "one" || d.Header["last"] != "one" {
		t.Errorf("%+v, dead before: %+v", again, d)
	}
}
