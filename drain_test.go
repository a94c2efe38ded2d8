package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P7: what a worker read ahead and had not begun reaches another worker in under 1 s after Stop begins, while a handler of the
// first one still runs, and no budget is spent.
func TestUnstartedMessagesMoveAtOnce(t *testing.T) {
	t.Parallel()
	for _, kind := range stopKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			const messages = 300
			prefix := redistest.Prefix(t)
			rc := redistest.Client(t)
			cfg := xstreamq.Config{KeyPrefix: prefix}

			first := stopConnect(t, kind, redistest.URL(t), cfg)
			q := stopQueue(t, first, "q")
			running, release := make(chan string, 1), make(chan struct{})
			stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
				running <- m.Body
				<-release
				return nil
			}, xstreamq.SubscribeOptions{Concurrency: 1, Prefetch: 2 * messages, VisibilityTimeout: time.Minute})
			stopStart(t, first)
			stopPublish(t, q, "slow")
			stopTake(t, "the slow handler", running)
			for i := range messages {
				stopPublish(t, q, fmt.Sprint(i))
			}
			redistest.WaitFor(t, stopWait, "all messages read ahead", func() bool {
				return stopPending(t, rc, prefix+"{q}", "g") == messages+1
			})

			second := stopConnect(t, kind, redistest.URL(t), cfg)
			var seen stopSeen
			arrived := make(chan struct{}, messages)
			stopSubscribe(t, stopQueue(t, second, "q"), func(_ context.Context, m *xstreamq.Message[string]) error {
				seen.note(m)
				arrived <- struct{}{}
				return nil
			}, xstreamq.SubscribeOptions{Concurrency: 10, VisibilityTimeout: time.Minute})
			stopStart(t, second)

			began := time.Now()
			stopped := make(chan error, 1)
			go func() {
				_, err := stopWithin(first, stopWait)
				stopped <- err
			}()
			for range messages {
				stopTake(t, "an unstarted message", arrived)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("the last of %d messages came %v after Stop began", messages, took)
			}
			if seen.bodies() != messages {
				t.Errorf("%d messages came, want %d", seen.bodies(), messages)
			}
			close(release)
			if err := stopTake(t, "Stop", stopped); err != nil {
				t.Error(err)
			}
			seen.unspent(t)
			if n := stopPending(t, rc, prefix+"{q}", "g"); n != 0 {
				t.Errorf("%d messages are still leased", n)
			}
		})
	}
}

// P5: a handler that obeys its context at the drain deadline spends no budget, and its message reaches another worker long
// before the lease runs out.
func TestCancelledHandlerSpendsNoBudget(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	cfg := xstreamq.Config{KeyPrefix: prefix}
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute, MaxRetries: xstreamq.NoRetries, MaxLostLeases: xstreamq.NoRetries}
	first := stopConnect(t, "open", redistest.URL(t), cfg)
	q := stopQueue(t, first, "q")
	running := make(chan string, 3)
	stopSubscribe(t, q, stopUntilCancelled(running), opts)
	stopStart(t, first)
	stopPublish(t, q, "a", "b", "c")
	for range 3 {
		stopTake(t, "a handler", running)
	}
	if _, err := stopWithin(first, 100*time.Millisecond); err != nil {
		t.Errorf("Stop: %v", err)
	}
	stopExpectUnspent(t, cfg, opts, 3)
}

// P5, P7: a handler that ignores its context is left behind and counted; its message comes again when the lease has run out,
// and no budget is spent.
func TestHandlerLeftBehindSpendsNoBudget(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	cfg := xstreamq.Config{KeyPrefix: prefix, CancelGrace: 300 * time.Millisecond}
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 2 * time.Second, MaxRetries: xstreamq.NoRetries, MaxLostLeases: xstreamq.NoRetries}
	first := stopConnect(t, "open", redistest.URL(t), cfg)
	q := stopQueue(t, first, "q")
	running, release := make(chan string, 2), make(chan struct{})
	defer close(release)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		running <- m.Body
		<-release
		return errors.New("too late to count")
	}, opts)
	stopStart(t, first)
	stopPublish(t, q, "a", "b")
	stopTake(t, "a handler", running)
	stopTake(t, "another handler", running)
	took, err := stopWithin(first, 200*time.Millisecond)
	if d := stopDrainError(t, err); d.Handlers != 2 || d.Err != nil {
		t.Errorf("DrainError{Handlers: %d, Err: %v}, want 2 and nil", d.Handlers, d.Err)
	}
	if took > 3*time.Second {
		t.Errorf("Stop took %v", took)
	}
	stopExpectUnspent(t, cfg, opts, 2)
	if got := stopPlaces(t, redistest.Client(t), prefix); got != (stopLeft{}) {
		t.Errorf("what is left: %+v", got)
	}
}

// stopExpectUnspent starts another worker and waits until it got so many messages, with nothing spent.
func stopExpectUnspent(t *testing.T, cfg xstreamq.Config, opts xstreamq.SubscribeOptions, messages int) {
	t.Helper()
	c := stopConnect(t, "open", redistest.URL(t), cfg)
	var seen stopSeen
	stopSubscribe(t, stopQueue(t, c, "q"), func(_ context.Context, m *xstreamq.Message[string]) error {
		seen.note(m)
		return nil
	}, opts)
	stopStart(t, c)
	redistest.WaitFor(t, stopWait, "every message", func() bool { return seen.bodies() == messages })
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	seen.unspent(t)
}

// stopLeft counts what is where for group g of queue q.
type stopLeft struct{ Leased, RetryLeased, Retry, Backoff, Dead int64 }

func stopPlaces(t *testing.T, rc rueidis.Client, prefix string) stopLeft {
	t.Helper()
	count := func(cmd rueidis.Completed) int64 {
		n, err := rc.Do(t.Context(), cmd).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return stopLeft{
		Leased:      stopPending(t, rc, prefix+"{q}", "g"),
		RetryLeased: stopPending(t, rc, prefix+"{q}.g.retry", "g-retry"),
		Retry:       count(rc.B().Xlen().Key(prefix + "{q}.g.retry").Build()),
		Backoff:     count(rc.B().Zcard().Key(prefix + "{q}.g.delayed").Build()),
		Dead:        count(rc.B().Xlen().Key(prefix + "{q}.g.dlq").Build()),
	}
}

// Verdicts keep their meaning after the drain deadline has cancelled the handler: nil, Discard and DeadLetter end the message
// here; any other error gives it back.
func TestVerdictsAfterCancellation(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		name    string
		verdict error
		outcome xstreamq.Outcome
		left    stopLeft
	}{
		{"nil", nil, xstreamq.Acked, stopLeft{}},
		{"discard", xstreamq.Discard(broken), xstreamq.Discarded, stopLeft{}},
		{"dead letter", xstreamq.DeadLetter(broken), xstreamq.Dead, stopLeft{Dead: 1}},
		{"context error", context.Canceled, xstreamq.Released, stopLeft{Backoff: 1}},
		{"plain error", broken, xstreamq.Released, stopLeft{Backoff: 1}},
		{"retry after", xstreamq.RetryAfter(time.Hour, broken), xstreamq.Released, stopLeft{Backoff: 1}},
		{"release", xstreamq.Release(broken), xstreamq.Released, stopLeft{Backoff: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			var mu sync.Mutex
			var outcomes []xstreamq.Outcome
			c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: prefix, Observer: xstreamq.Observer{
				Settled: func(s xstreamq.Settled) {
					mu.Lock()
					defer mu.Unlock()
					outcomes = append(outcomes, s.Outcome)
				},
			}})
			q := stopQueue(t, c, "q")
			running := make(chan string, 1)
			var cause atomic.Value
			stopSubscribe(t, q, func(ctx context.Context, m *xstreamq.Message[string]) error {
				running <- m.Body
				<-ctx.Done()
				cause.Store(context.Cause(ctx))
				return tt.verdict
			}, xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute, MaxRetries: xstreamq.NoRetries})
			stopStart(t, c)
			stopPublish(t, q, "x")
			stopTake(t, "the handler", running)
			if _, err := stopWithin(c, 50*time.Millisecond); err != nil {
				t.Errorf("Stop: %v", err)
			}
			if got, _ := cause.Load().(error); !errors.Is(got, xstreamq.ErrDraining) {
				t.Errorf("the context ended with %v", got)
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff([]xstreamq.Outcome{tt.outcome}, outcomes); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.left, stopPlaces(t, redistest.Client(t), prefix)); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// Draining(ctx) closes when Stop begins, long before the handler's context ends, and on any other context it is nil.
func TestDrainingTellsHandlers(t *testing.T) {
	t.Parallel()
	c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	q := stopQueue(t, c, "q")
	running := make(chan string, 1)
	early := make(chan error, 1)
	stopSubscribe(t, q, func(ctx context.Context, m *xstreamq.Message[string]) error {
		select {
		case <-xstreamq.Draining(ctx):
			t.Error("Draining is closed before Stop")
		default:
		}
		running <- m.Body
		<-xstreamq.Draining(ctx)
		early <- ctx.Err()
		return xstreamq.Release(nil)
	}, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	stopPublish(t, q, "x")
	stopTake(t, "the handler", running)
	if _, err := stopWithin(c, stopWait); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := stopTake(t, "what the handler saw", early); err != nil {
		t.Errorf("the handler's context ended with Draining: %v", err)
	}
	if xstreamq.Draining(t.Context()) != nil {
		t.Error("Draining of a context that is no handler's is not nil")
	}
}

// drainOldest returns the age of the lease of group g that was not renewed for longest.
func drainOldest(t *testing.T, rc rueidis.Client, prefix string) (oldest time.Duration) {
	t.Helper()
	rows, err := rc.Do(t.Context(), rc.B().Xpending().Key(prefix+"{q}").Group("g").Start("-").End("+").Count(100).Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		fields, err := row.ToArray()
		if err != nil {
			t.Fatal(err)
		}
		idle, err := fields[2].AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		oldest = max(oldest, time.Duration(idle)*time.Millisecond)
	}
	return oldest
}

// P5: a rolling deploy, each generation with another VisibilityTimeout, spends no budget of any message: of those read ahead, of
// handlers that obey the drain deadline, and of handlers left behind by it.
func TestRollingDeployWithOtherLeasesSpendsNothing(t *testing.T) {
	t.Parallel()
	const messages = 60
	prefix := redistest.Prefix(t)
	cfg := xstreamq.Config{KeyPrefix: prefix, CancelGrace: 300 * time.Millisecond}
	opts := xstreamq.SubscribeOptions{
		Concurrency: 10, Prefetch: 20, MaxRetries: xstreamq.NoRetries, MaxLostLeases: xstreamq.NoRetries,
	}
	rc := redistest.Client(t)
	var seen stopSeen
	var left sync.Map // bodies whose handler was left behind, and will not return
	release := make(chan struct{})
	defer close(release)

	var old *xstreamq.Client
	for generation, lease := range []time.Duration{4 * time.Second, time.Second, 2 * time.Second} {
		c := stopConnect(t, "open", redistest.URL(t), cfg)
		q := stopQueue(t, c, "q")
		running := make(chan struct{}, messages)
		opts.VisibilityTimeout = lease
		stopSubscribe(t, q, func(ctx context.Context, m *xstreamq.Message[string]) error {
			seen.note(m)
			running <- struct{}{}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, xstreamq.ErrDraining) {
				t.Errorf("generation %d: a handler ended with %v", generation, cause)
			}
			if _, before := left.Load(m.Body); !before && len(m.Body)%2 == 0 {
				left.Store(m.Body, true)
				<-release
			}
			return ctx.Err()
		}, opts)
		if generation == 0 {
			for i := range messages {
				stopPublish(t, q, fmt.Sprint(i))
			}
		}
		stopStart(t, c)
		if generation == 1 {
			// The new workers, with their shorter leases, leave those of the old ones alone.
			redistest.WaitFor(t, stopWait, "an old lease that is older than a new one may get", func() bool {
				return drainOldest(t, rc, prefix) > lease+lease/5
			})
		}
		if old != nil {
			_, _ = stopWithin(old, 50*time.Millisecond)
		}
		for range opts.Concurrency {
			stopTake(t, "a handler of the new generation", running)
		}
		old = c
	}
	opts.VisibilityTimeout = time.Second
	last := stopConnect(t, "open", redistest.URL(t), cfg)
	var done stopSeen
	stopSubscribe(t, stopQueue(t, last, "q"), func(_ context.Context, m *xstreamq.Message[string]) error {
		seen.note(m)
		done.note(m)
		return nil
	}, opts)
	stopStart(t, last)
	_, _ = stopWithin(old, 50*time.Millisecond)
	redistest.WaitFor(t, stopWait, "every message handled", func() bool { return done.bodies() == messages })
	if err := last.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	seen.unspent(t)
	if got := stopPlaces(t, redistest.Client(t), prefix); got != (stopLeft{}) {
		t.Errorf("what is left: %+v", got)
	}
}
