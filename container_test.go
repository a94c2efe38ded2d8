package xstreamq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The core of the suite against a server in a container: publish, fail, retry, dead letters, delays, a vanished worker, drain.
func TestContainerLane(t *testing.T) {
	t.Parallel()
	url, ok := redistest.StartContainer(t)
	if !ok {
		t.Skip("NO CONTAINER: no Docker engine answers, so nothing ran in a container; every other test runs this on a local server")
	}
	c, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: "core:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	testCore(t, c, "core:", redistest.Dial(t, url))
}

// The same on the shared server, and through clients of a caller: as rueidis makes them by default, and with the older protocol.
func TestCore(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(*rueidis.ClientOption)
	}{
		{"New", func(*rueidis.ClientOption) {}},
		{"New, RESP2", func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true }},
		{"New, RESP2, pipelining", func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache, o.AlwaysPipelining = true, true, true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			option, err := rueidis.ParseURL(redistest.URL(t))
			if err != nil {
				t.Fatal(err)
			}
			c.set(&option)
			rc, err := rueidis.NewClient(option)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(rc.Close)
			prefix := redistest.Prefix(t)
			client, err := xstreamq.New(rc, xstreamq.Config{KeyPrefix: prefix})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			testCore(t, client, prefix, rc)
		})
	}
	t.Run("Open", func(t *testing.T) {
		t.Parallel()
		prefix := redistest.Prefix(t)
		testCore(t, open(t, xstreamq.Config{KeyPrefix: prefix}), prefix, redistest.Client(t))
	})
}

// coreHandler handles messages by what their body says, and counts how each ended.
type coreHandler struct {
	mu    sync.Mutex
	ended map[string]int // handled, by body
	runs  map[string]int // deliveries, by body
	bad   []string
}

func (h *coreHandler) handle(_ context.Context, m *xstreamq.Message[[]byte]) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	body := string(m.Body)
	h.runs[body]++
	if m.Header["kind"] != strings.TrimRight(body, "0123456789-") {
		h.bad = append(h.bad, "header of "+body)
	}
	switch {
	case strings.HasPrefix(body, "fail"):
		return errors.New("always")
	case strings.HasPrefix(body, "panic"):
		panic("always")
	case strings.HasPrefix(body, "reject"):
		return xstreamq.DeadLetter(errors.New("never again"))
	case strings.HasPrefix(body, "flaky") && m.Attempt < 3:
		return errors.New("not yet")
	case strings.HasPrefix(body, "release") && h.runs[body] < 3:
		return xstreamq.Release(nil)
	case strings.HasPrefix(body, "discard"):
		h.ended[body]++
		return xstreamq.Discard(nil)
	}
	h.ended[body]++
	return nil
}

// testCore runs the life of a message in every form on one server.
func testCore(t *testing.T, c *xstreamq.Client, prefix string, rc rueidis.Client) {
	t.Helper()
	r := &foreignRig{t: t, prefix: prefix, name: "q", redis: rc, client: c}
	r.queue = foreignQueue(t, c, "q", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	h := &coreHandler{ended: map[string]int{}, runs: map[string]int{}}
	var deaths sync.Map
	opts := xstreamq.SubscribeOptions{
		MaxRetries: 2, VisibilityTimeout: 2 * time.Second, Dedupe: time.Hour,
		Backoff:      xstreamq.Backoff{Initial: 5 * time.Millisecond},
		OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { deaths.Store(d.OriginalID, d) },
	}
	vanished := r.add("body", "vanish", "h:kind", "vanish")
	r.vanish("g", "500")
	r.subscribe("g", h.handle, opts)
	r.start()
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}

	runs := map[string]int{"vanish": 1}
	var batch []xstreamq.Outgoing[[]byte]
	for kind, deliveries := range map[string]int{
		"ok": 1, "later": 1, "flaky": 3, "release": 3, "discard": 1, "fail": 3, "panic": 3, "reject": 1,
	} {
		for _, body := range numbered(kind, 10) {
			m := xstreamq.Outgoing[[]byte]{Body: []byte(body), Options: []xstreamq.PublishOption{xstreamq.WithHeader("kind", kind)}}
			if kind == "later" {
				m.Options = append(m.Options, xstreamq.WithDelay(300*time.Millisecond))
			}
			batch = append(batch, m)
			runs[body] = deliveries
		}
	}
	ids := map[string]string{} // body by id
	for i, result := range r.queue.PublishBatch(t.Context(), batch) {
		if result.Err != nil {
			t.Fatal(result.Err)
		}
		ids[result.ID] = string(batch[i].Body)
	}
	noBody := r.add("x", "y")
	r.waitEnded("g")
	checkCore(t, h, runs, vanished)
	checkCoreDeaths(t, r, &deaths, ids, noBody)
	testCoreDrain(t, r)
}

func checkCore(t *testing.T, h *coreHandler, runs map[string]int, vanished string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.bad) > 0 {
		t.Errorf("wrong: %v", h.bad)
	}
	for body, want := range runs {
		if h.runs[body] != want {
			t.Errorf("%s (%s) was delivered %d times, want %d", body, vanished, h.runs[body], want)
		}
		ends := 1
		if strings.HasPrefix(body, "fail") || strings.HasPrefix(body, "panic") || strings.HasPrefix(body, "reject") {
			ends = 0
		}
		if h.ended[body] != ends {
			t.Errorf("%s was handled %d times, want %d", body, h.ended[body], ends)
		}
	}
}

func checkCoreDeaths(t *testing.T, r *foreignRig, deaths *sync.Map, ids map[string]string, noBody string) {
	t.Helper()
	const want = 31
	told := func() int {
		n := 0
		deaths.Range(func(any, any) bool { n++; return true })
		return n
	}
	redistest.WaitFor(t, foreignWait, "OnDeadLetter", func() bool { return told() == want })
	if n := r.len(".g.dlq"); n != want {
		t.Errorf("%d dead letters, want %d", n, want)
	}
	deaths.Range(func(id, value any) bool {
		d := value.(xstreamq.DeadMessage)
		kind, _, _ := strings.Cut(ids[d.OriginalID], "-")
		switch {
		case d.OriginalID == noBody && d.Reason == xstreamq.NoBody && d.Body == nil:
		case string(d.Body) != ids[d.OriginalID] || d.Header["kind"] != kind || d.LostLeases != 0:
			t.Errorf("dead letter %+v, published as %q", d, ids[d.OriginalID])
		case kind == "reject" && d.Reason == xstreamq.Rejected && d.Failures == 1:
		case (kind == "fail" || kind == "panic") && d.Reason == xstreamq.Failed && d.Failures == 3:
		default:
			t.Errorf("dead letter %+v of %q", d, kind)
		}
		return true
	})
}

// testCoreDrain stops the client with one handler at work and messages read ahead: those go on in another client at once, unharmed,
// while the handler ends its own in peace.
func testCoreDrain(t *testing.T, r *foreignRig) {
	t.Helper()
	gate := newHeldGate()
	sub := r.subscribe("drained", gate.handle, xstreamq.SubscribeOptions{
		Concurrency: 1, Prefetch: 10, VisibilityTimeout: time.Hour, StartFrom: xstreamq.Now,
	})
	if err := sub.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	published := numbered("drain", 8)
	r.publishAll(published)
	inHandler := gate.next(t)
	redistest.WaitFor(t, foreignWait, "some read ahead", func() bool {
		for _, s := range r.client.Health(t.Context()).Subscriptions {
			if s.Group == "drained" {
				return s.Waiting > 2
			}
		}
		return false
	})
	stopped := make(chan error, 1)
	go func() { stopped <- r.client.Stop(context.Background()) }()

	other, err := xstreamq.New(r.redis, xstreamq.Config{KeyPrefix: r.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	q := foreignQueue(t, other, "q", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	taken := make(chan xstreamq.Delivery, len(published))
	if _, err := q.Subscribe("drained", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		taken <- m.Delivery
		return nil
	}, xstreamq.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for range published[1:] {
		d := foreignAwait(t, taken)
		bodies = append(bodies, string(d.Raw))
		if d.Attempt != 1 {
			t.Errorf("given back with counters: %+v", d)
		}
	}
	gate.out <- nil
	if err := foreignAwait(t, stopped); err != nil {
		t.Errorf("Stop: %v", err)
	}
	r.waitEnded("drained")
	slices.Sort(bodies)
	if !slices.Equal(bodies, published[1:]) || string(inHandler.Raw) != published[0] {
		t.Errorf("%s was in its handler, the other client took %v", inHandler.Raw, bodies)
	}
}
