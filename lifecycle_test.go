package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Every way through a client's life ends without a goroutine left, on Open's client, on a caller's, and on one that speaks
// RESP2. A caller's own connections are the caller's to close.
func TestLifeLeavesNoGoroutines(t *testing.T) {
	stopAlone(t, []string{"open", "new", "resp2"}, func(t *testing.T, kind string) {
		url := redistest.URL(t)
		prefix := redistest.Prefix(t)
		connect := func(cfg xstreamq.Config) (*xstreamq.Client, func()) {
			cfg.KeyPrefix = prefix
			if kind == "new" {
				rc := stopRueidis(t, url)
				return stopNew(t, rc, cfg), rc.Close
			}
			if kind == "resp2" {
				return stopConnect(t, "open", url+"?protocol=2", cfg), func() {}
			}
			return stopConnect(t, kind, url, cfg), func() {}
		}
		for name, live := range lives {
			before := goleak.IgnoreCurrent()
			c, closeCallers := connect(xstreamq.Config{DrainTimeout: 300 * time.Millisecond, CancelGrace: 300 * time.Millisecond})
			live(t, c)
			_ = c.Close()
			closeCallers()
			if took := stopLeaks(t, before, 10*time.Second); took > 3*time.Second {
				t.Errorf("%s: the last goroutine ended only %v after Close", name, took)
			}
			if t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

var lives = map[string]func(t *testing.T, c *xstreamq.Client){
	"never started": func(t *testing.T, c *xstreamq.Client) {
		stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
	},
	"publisher only": func(t *testing.T, c *xstreamq.Client) {
		stopPublish(t, stopQueue(t, c, "q"), "x")
	},
	"started and idle": func(t *testing.T, c *xstreamq.Client) {
		stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
		stopStart(t, c)
	},
	"stopped before Start": func(t *testing.T, c *xstreamq.Client) {
		stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Start(t.Context()); !errors.Is(err, xstreamq.ErrStopped) {
			t.Error(err)
		}
	},
	"busy": func(t *testing.T, c *xstreamq.Client) {
		running := make(chan string, 1)
		q := stopQueue(t, c, "busy")
		stopSubscribe(t, q, stopUntilCancelled(running), xstreamq.SubscribeOptions{})
		stopStart(t, c)
		stopPublish(t, q, "x")
		stopTake(t, "the handler", running)
	},
	"left behind, and returned later": func(t *testing.T, c *xstreamq.Client) {
		running, release := make(chan string, 1), make(chan struct{})
		q := stopQueue(t, c, "behind")
		stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
			running <- m.Body
			<-release
			return nil
		}, xstreamq.SubscribeOptions{})
		stopStart(t, c)
		stopPublish(t, q, "x")
		stopTake(t, "the handler", running)
		_ = stopDrainError(t, c.Stop(context.Background()))
		close(release)
	},
	"unsubscribed": func(t *testing.T, c *xstreamq.Client) {
		sub := stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
		stopStart(t, c)
		if err := sub.Unsubscribe(t.Context()); err != nil {
			t.Error(err)
		}
	},
	"handlers panicked and went away": func(t *testing.T, c *xstreamq.Client) {
		q := stopQueue(t, c, "panics")
		dead := make(chan xstreamq.DeadMessage, 1)
		stopSubscribe(t, q, func(context.Context, *xstreamq.Message[string]) error { panic("no") }, xstreamq.SubscribeOptions{
			MaxRetries: xstreamq.NoRetries, OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
		})
		stopStart(t, c)
		stopPublish(t, q, "x")
		stopTake(t, "the dead letter", dead)
	},
}

// Start twice is ErrStarted, after Stop ErrStopped; a group twice is ErrAlreadySubscribed.
func TestStates(t *testing.T) {
	t.Parallel()
	c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	q := stopQueue(t, c, "q")
	want := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	subscribe := func() error {
		_, err := q.Subscribe("g", stopNothing, xstreamq.SubscribeOptions{})
		return err
	}
	want("Subscribe", subscribe(), nil)
	want("Subscribe twice", subscribe(), xstreamq.ErrAlreadySubscribed)
	want("Start", c.Start(t.Context()), nil)
	want("Start twice", c.Start(t.Context()), xstreamq.ErrStarted)
	want("Subscribe twice while running", subscribe(), xstreamq.ErrAlreadySubscribed)
	want("Stop", c.Stop(t.Context()), nil)
	want("Stop twice", c.Stop(t.Context()), nil)
	want("Start after Stop", c.Start(t.Context()), xstreamq.ErrStopped)
	want("Run after Stop", c.Run(t.Context()), xstreamq.ErrStopped)
	want("Subscribe after Stop", subscribe(), xstreamq.ErrStopped)
	_, err := q.Publish(t.Context(), "still possible")
	want("Publish after Stop", err, nil)
	want("Close", c.Close(), nil)
	want("Close twice", c.Close(), nil)
	if _, err = q.Publish(t.Context(), "x"); err == nil || errors.Is(err, xstreamq.ErrPublishUncertain) {
		t.Errorf("Publish after Close: %v, want an error that says it was not stored", err)
	}
}

// Stop may be called from many goroutines at once: all return when the drain has ended, with the same result.
func TestStopConcurrently(t *testing.T) {
	t.Parallel()
	c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	q := stopQueue(t, c, "q")
	running, release := make(chan string, 1), make(chan struct{})
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		running <- m.Body
		<-release
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	stopPublish(t, q, "x")
	stopTake(t, "the handler", running)
	begun := make(chan error, 1)
	go func() { begun <- c.Stop(context.Background()) }()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := stopWithin(c, stopWait); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	all.Wait()
	if err := stopTake(t, "Stop", begun); err != nil {
		t.Error(err)
	}
}

// A later call of Stop returns by its own deadline plus CancelGrace while the first one still drains.
func TestLaterStopKeepsItsOwnDeadline(t *testing.T) {
	t.Parallel()
	c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t), CancelGrace: 200 * time.Millisecond})
	q := stopQueue(t, c, "q")
	draining, release := make(chan struct{}), make(chan struct{})
	running := make(chan string, 1)
	stopSubscribe(t, q, func(ctx context.Context, m *xstreamq.Message[string]) error {
		running <- m.Body
		<-xstreamq.Draining(ctx)
		close(draining)
		<-release
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	stopPublish(t, q, "x")
	stopTake(t, "the handler", running)
	first := make(chan error, 1)
	go func() { first <- c.Stop(context.Background()) }()
	stopTake(t, "the drain", draining)
	took, err := stopWithin(c, 200*time.Millisecond)
	if !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
		t.Errorf("the later Stop returned %v after %v", err, took)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	if err := c.Stop(cancelled); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("Stop with a cancelled context returned %v after %v", err, time.Since(began))
	}
	close(release)
	if err := stopTake(t, "the first Stop", first); err != nil {
		t.Error(err)
	}
}

// Stop from inside a handler does not deadlock: with the handler's context it begins the drain and returns; with any other it is
// bounded like every Stop.
func TestStopFromInsideAHandler(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ctx  func(context.Context) context.Context
		left bool
	}{
		"its context":        {func(ctx context.Context) context.Context { return ctx }, false},
		"a context of it":    {context.WithoutCancel, false},
		"context.Background": {func(context.Context) context.Context { return context.Background() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prefix := redistest.Prefix(t)
			c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{
				KeyPrefix: prefix, DrainTimeout: 300 * time.Millisecond, CancelGrace: 300 * time.Millisecond,
			})
			q := stopQueue(t, c, "q")
			inside := make(chan error, 1)
			stopSubscribe(t, q, func(ctx context.Context, _ *xstreamq.Message[string]) error {
				inside <- c.Stop(tt.ctx(ctx))
				return nil
			}, xstreamq.SubscribeOptions{})
			stopStart(t, c)
			stopPublish(t, q, "x")
			err := stopTake(t, "Stop inside the handler", inside)
			outside := c.Stop(t.Context())
			if tt.left {
				_ = stopDrainError(t, err)
				_ = stopDrainError(t, outside)
				return
			}
			if err != nil || outside != nil {
				t.Errorf("Stop inside: %v, outside: %v", err, outside)
			}
			if got := stopPlaces(t, redistest.Client(t), prefix); got != (stopLeft{}) {
				t.Errorf("the handler's success was lost: %+v", got)
			}
		})
	}
}

// A subscription of a running client comes up by itself, can be taken off while messages flow, and put on again: no message
// is lost, and none waits for a lease.
func TestSubscribeWhileRunning(t *testing.T) {
	t.Parallel()
	const messages, rounds = 600, 6
	prefix := redistest.Prefix(t)
	rc := redistest.Client(t)
	c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: prefix})
	stopStart(t, c)
	q := stopQueue(t, c, "q")
	var seen stopSeen
	handle := func(_ context.Context, m *xstreamq.Message[string]) error {
		seen.note(m)
		return nil
	}
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute}
	published := make(chan struct{})
	go func() {
		defer close(published)
		for i := range messages {
			if _, err := q.Publish(t.Context(), fmt.Sprint(i)); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range rounds {
		sub := stopSubscribe(t, q, handle, opts)
		if err := sub.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		had := seen.bodies()
		redistest.WaitFor(t, stopWait, "some messages", func() bool { return seen.bodies() >= min(had+20, messages) })
		if err := sub.Unsubscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := sub.Unsubscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := stopPending(t, rc, prefix+"{q}", "g"); n != 0 {
			t.Fatalf("%d messages are leased to a subscription that is off", n)
		}
	}
	stopSubscribe(t, q, handle, opts)
	stopTake(t, "the publisher", published)
	redistest.WaitFor(t, stopWait, "every message", func() bool { return seen.bodies() == messages })
	seen.unspent(t)
}

// Unsubscribe returns a *DrainError for a handler that is left behind, and may be called by a handler.
func TestUnsubscribe(t *testing.T) {
	t.Parallel()
	c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t), CancelGrace: 100 * time.Millisecond})
	q := stopQueue(t, c, "q")
	running, release := make(chan string, 1), make(chan struct{})
	defer close(release)
	sub := stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		running <- m.Body
		<-release
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	stopPublish(t, q, "x")
	stopTake(t, "the handler", running)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if d := stopDrainError(t, sub.Unsubscribe(ctx)); d.Handlers != 1 {
		t.Errorf("%d handlers left behind", d.Handlers)
	}
	// The client goes on, and so may the group.
	inside := make(chan error, 1)
	self := make(chan *xstreamq.Subscription, 1)
	sub = stopSubscribe(t, q, func(ctx context.Context, _ *xstreamq.Message[string]) error {
		s := <-self
		inside <- s.Unsubscribe(ctx)
		return nil
	}, xstreamq.SubscribeOptions{})
	self <- sub
	stopPublish(t, q, "y")
	if err := stopTake(t, "Unsubscribe inside the handler", inside); err != nil {
		t.Errorf("Unsubscribe inside the handler: %v", err)
	}
	if err := sub.Unsubscribe(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// Run ends with nil when its context does, with a *DrainError when a handler overruns, and when somebody else stops the client.
func TestRun(t *testing.T) {
	t.Parallel()
	t.Run("context", func(t *testing.T) {
		t.Parallel()
		c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
		q := stopQueue(t, c, "q")
		handled := make(chan string, 1)
		stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
			handled <- m.Body
			return nil
		}, xstreamq.SubscribeOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- c.Run(ctx) }()
		stopPublish(t, q, "x")
		stopTake(t, "the message", handled)
		cancel()
		if err := stopTake(t, "Run", ran); err != nil {
			t.Error(err)
		}
	})
	t.Run("overrun", func(t *testing.T) {
		t.Parallel()
		c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{
			KeyPrefix: redistest.Prefix(t), DrainTimeout: 100 * time.Millisecond, CancelGrace: 100 * time.Millisecond,
		})
		q := stopQueue(t, c, "q")
		running, release := make(chan string, 1), make(chan struct{})
		defer close(release)
		stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
			running <- m.Body
			<-release
			return nil
		}, xstreamq.SubscribeOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- c.Run(ctx) }()
		stopPublish(t, q, "x")
		stopTake(t, "the handler", running)
		cancel()
		if d := stopDrainError(t, stopTake(t, "Run", ran)); d.Handlers != 1 {
			t.Errorf("%d handlers left behind, want 1", d.Handlers)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		c := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
		sub := stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
		ran := make(chan error, 1)
		go func() { ran <- c.Run(t.Context()) }()
		if err := sub.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if err := stopTake(t, "Run", ran); err != nil {
			t.Error(err)
		}
	})
}

// P8: neither Stop nor Close closes a client that was given to New, also after a drain that ran out of time.
func TestCallersClientStaysOpen(t *testing.T) {
	t.Parallel()
	rc := stopRueidis(t, redistest.URL(t))
	c := stopNew(t, rc, xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
	stopStart(t, c)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := rc.Do(t.Context(), rc.B().Ping().Build()).Error(); err != nil {
		t.Errorf("the caller's client after Close: %v", err)
	}
}

// Workers that come and go leave no consumers behind, also when they handled messages or gave some back.
func TestConsumersDoNotPileUp(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rc := stopRueidis(t, redistest.URL(t))
	for i := range 200 {
		c := stopNew(t, rc, xstreamq.Config{KeyPrefix: prefix})
		q := stopQueue(t, c, "q")
		handled := make(chan struct{}, 1)
		stopSubscribe(t, q, func(context.Context, *xstreamq.Message[string]) error {
			select {
			case handled <- struct{}{}:
			default: // one that was released comes again and again
			}
			if i%2 == 0 {
				return xstreamq.Release(nil)
			}
			return nil
		}, xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute, Backoff: xstreamq.Backoff{Initial: -1}, Concurrency: 1})
		stopPublish(t, q, "x")
		stopStart(t, c)
		stopTake(t, "a message", handled)
		if err := c.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := lifeConsumers(t, rc, prefix); n != 0 {
		t.Errorf("%d consumers are left after all workers left in good order", n)
	}
}

// lifeConsumers returns how many consumers group g of queue q has on its two streams.
func lifeConsumers(t *testing.T, rc rueidis.Client, prefix string) (n int) {
	t.Helper()
	for key, group := range map[string]string{"{q}": "g", "{q}.g.retry": "g-retry"} {
		consumers, err := rc.Do(t.Context(), rc.B().XinfoConsumers().Key(prefix+key).Group(group).Build()).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		n += len(consumers)
	}
	return n
}
