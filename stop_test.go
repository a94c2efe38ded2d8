package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P7: a read that Stop interrupts loses nothing of what Redis was just handing over. 300 workers each subscribe, get a message
// published, and are stopped at a random moment of that; with leases of 60 s whatever one of them took along would be missing
// at the end.
func TestStopRaceStrandsNothing(t *testing.T) {
	t.Parallel()
	for _, kind := range stopKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			stopRaces(t, kind, 300)
		})
	}
}

func stopRaces(t *testing.T, kind string, rounds int) {
	t.Helper()
	prefix := redistest.Prefix(t)
	publisher := stopConnect(t, "open", redistest.URL(t), xstreamq.Config{KeyPrefix: prefix})
	out := stopQueue(t, publisher, "q")
	rc := stopRueidis(t, redistest.URL(t))
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute, Concurrency: 2}
	var seen stopSeen
	handle := func(_ context.Context, m *xstreamq.Message[string]) error {
		seen.note(m)
		return nil
	}
	for i := range rounds {
		var c *xstreamq.Client
		var err error
		cfg := xstreamq.Config{KeyPrefix: prefix}
		if kind == "open" {
			c, err = xstreamq.Open(redistest.URL(t), cfg)
		} else {
			c, err = xstreamq.New(rc, cfg)
		}
		if err != nil {
			t.Fatal(err)
		}
		stopSubscribe(t, stopQueue(t, c, "q"), handle, opts)
		stopStart(t, c)
		stopped := make(chan error, 1)
		wait := rand.N(3 * time.Millisecond)
		time.AfterFunc(wait, func() {
			_, err := stopWithin(c, stopWait)
			stopped <- err
		})
		stopPublish(t, out, fmt.Sprint(i))
		if err := stopTake(t, "Stop", stopped); err != nil {
			t.Fatalf("round %d, stopped after %v: %v", i, wait, err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if n := stopPending(t, rc, prefix+"{q}", "g") + stopPending(t, rc, prefix+"{q}.g.retry", "g-retry"); n != 0 {
			t.Fatalf("round %d, stopped after %v: %d messages are leased to a worker that is gone", i, wait, n)
		}
	}
	last := stopConnect(t, kind, redistest.URL(t), xstreamq.Config{KeyPrefix: prefix})
	stopSubscribe(t, stopQueue(t, last, "q"), handle, opts)
	stopStart(t, last)
	redistest.WaitFor(t, stopWait, "every message", func() bool { return seen.bodies() == rounds })
	seen.unspent(t)
}

// P7: without Redis, however it went away, Stop(2s) returns by its deadline plus CancelGrace, for idle, busy and prefetching
// workers; handlers are cancelled at the deadline; and after Close no goroutine is left.
func TestStopWithoutRedis(t *testing.T) {
	var names []string
	for _, fault := range []string{"killed", "paused", "silent", "silent-to-new-connections", "unable-to-save"} {
		for _, kind := range stopKinds {
			names = append(names, fault+"-"+kind)
		}
	}
	stopAlone(t, names, func(t *testing.T, name string) {
		i := strings.LastIndexByte(name, '-')
		stopWithoutRedis(t, name[:i], name[i+1:])
	})
}

const stopDeadline = 2 * time.Second

func stopWithoutRedis(t *testing.T, fault, kind string) {
	t.Helper()
	dir := t.TempDir()
	server := redistest.Start(t, redistest.Options{Dir: dir})
	proxy := redistest.NewProxy(t, server.URL())
	release := make(chan struct{})
	before := goleak.IgnoreCurrent()
	workers := []*stopWorker{
		{state: "idle"},
		{state: "busy", messages: 2},
		{state: "prefetched", messages: 20},
		{state: "stubborn", messages: 1, release: release},
	}
	var callers []rueidis.Client
	for _, w := range workers {
		if kind == "open" {
			w.client = stopConnect(t, kind, proxy.URL(), xstreamq.Config{})
		} else {
			callers = append(callers, stopRueidis(t, proxy.URL()))
			w.client = stopNew(t, callers[len(callers)-1], xstreamq.Config{})
		}
		w.begin(t)
	}
	breakRedis(t, fault, server, proxy, dir)
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() { w.stop(t) })
	}
	all.Wait()
	close(release)
	for _, c := range callers {
		c.Close()
	}
	took := stopLeaks(t, before, 15*time.Second)
	t.Logf("no goroutine after %v", took)
	if kind == "open" && took > time.Second {
		t.Errorf("the last goroutine ended only %v after Close", took)
	}
	server.Resume() // it could not be stopped in good order
}

func breakRedis(t *testing.T, fault string, server *redistest.Server, proxy *redistest.Proxy, dir string) {
	t.Helper()
	switch fault {
	case "killed":
		server.Kill()
	case "paused":
		server.Pause()
	case "silent":
		proxy.BlackHole()
	case "silent-to-new-connections":
		proxy.BlackHole()
		proxy.Cut()
	case "unable-to-save":
		healthMisconf(t, server, dir)
	}
}

// stopWorker is a client with one subscription on a queue named after its state.
type stopWorker struct {
	client   *xstreamq.Client
	state    string
	messages int
	release  chan struct{} // what a stubborn handler waits for; others obey their context

	stopping  atomic.Int64
	cancelled atomic.Int64 // ns from Stop until a handler's context ended, the latest
}

func (w *stopWorker) begin(t *testing.T) {
	t.Helper()
	running := make(chan struct{}, w.messages)
	q := stopQueue(t, w.client, w.state)
	stopSubscribe(t, q, func(ctx context.Context, _ *xstreamq.Message[string]) error {
		running <- struct{}{}
		<-ctx.Done()
		w.cancelled.Store(time.Now().UnixNano() - w.stopping.Load())
		if !errors.Is(context.Cause(ctx), xstreamq.ErrDraining) {
			t.Errorf("%s: the handler's context ended with %v", w.state, context.Cause(ctx))
		}
		if w.release != nil {
			<-w.release
		}
		return ctx.Err()
	}, xstreamq.SubscribeOptions{Concurrency: 2, Prefetch: 50})
	stopPublish(t, q, make([]string, w.messages)...)
	stopStart(t, w.client)
	for range min(w.messages, 2) {
		stopTake(t, "a handler to begin", running)
	}
}

func (w *stopWorker) stop(t *testing.T) {
	const slack = time.Second // a starved machine; what goes wrong costs 5s
	w.stopping.Store(time.Now().UnixNano())
	took, err := stopWithin(w.client, stopDeadline)
	began := time.Now()
	_ = w.client.Close() // says what Stop said
	t.Logf("%s: Stop took %v, Close %v: %v", w.state, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond), err)
	if took > stopDeadline+time.Second+slack {
		t.Errorf("%s: Stop took %v", w.state, took)
	}
	if d := time.Since(began); d > time.Second+slack {
		t.Errorf("%s: Close took %v", w.state, d)
	}
	if after := time.Duration(w.cancelled.Load()); w.messages > 0 && (after < stopDeadline || after > stopDeadline+slack*8/10) {
		t.Errorf("%s: the handler was cancelled %v after Stop began", w.state, after)
	}
	var left *xstreamq.DrainError
	if errors.As(err, &left) != (w.release != nil) || left != nil && left.Handlers != w.messages {
		t.Errorf("%s: Stop returned %v", w.state, err)
	}
}
