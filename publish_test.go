package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// published is what Observer.Published is told.
type published struct {
	queue string
	n     int
	err   error
}

type publishLog struct {
	mu    sync.Mutex
	calls []published
}

func (l *publishLog) observer() xstreamq.Observer {
	return xstreamq.Observer{Published: func(queue string, n int, err error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.calls = append(l.calls, published{queue, n, err})
	}}
}

func (l *publishLog) take() []published {
	l.mu.Lock()
	defer l.mu.Unlock()
	calls := l.calls
	l.calls = nil
	return calls
}

// PublishBatch (P1): results come in the order of the messages, those of messages for delivery at once with ids that grow; what is
// invalid is refused alone; and exactly what was stored is delivered.
func TestPublishBatchOf5000(t *testing.T) {
	t.Parallel()
	const n = 5000
	var log publishLog
	r := newForeignRig(t, xstreamq.Config{Observer: log.observer(), CompactEvery: -1, MaxBodySize: 100})
	batch := make([]xstreamq.Outgoing[[]byte], n)
	invalid := 0
	for i := range batch {
		m := &batch[i]
		m.Body = strconv.AppendInt(nil, int64(i), 10)
		switch {
		case i%7 == 3:
			m.Options = []xstreamq.PublishOption{xstreamq.WithHeader("a", "1"), xstreamq.WithHeader("a", "2")}
			invalid++
		case i%11 == 5:
			m.Body = make([]byte, 101)
			invalid++
		case i%5 == 2:
			m.Options = []xstreamq.PublishOption{xstreamq.WithDelay(time.Duration(i) * time.Millisecond / 10)}
		}
	}
	results := r.queue.PublishBatch(t.Context(), batch)

	calls := log.take()
	if len(results) != n || len(calls) != 1 || calls[0].queue != "q" || calls[0].n != n-invalid || calls[0].err == nil {
		t.Fatalf("%d results; the observer was told %v", len(results), calls)
	}
	waiting := map[string]string{} // body by id
	members, err := r.do("ZRANGE", r.key(".delayed"), "0", "-1").AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		id, fields, err := wire.SplitMember(m)
		if err != nil {
			t.Fatal(err)
		}
		waiting[id] = foreignEntry{Fields: fields}.get("body")
	}
	for _, e := range r.entries("") {
		waiting[e.ID] = e.get("body")
	}
	checkBatch(t, batch, results, waiting)
	if len(waiting) != n-invalid {
		t.Errorf("%d messages are stored, want %d", len(waiting), n-invalid)
	}

	var inbox foreignInbox
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		inbox.add(m.Delivery)
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 50})
	r.start()
	r.waitEnded("g")
	r.stop()
	for _, d := range inbox.all() {
		if waiting[d.OriginalID] != string(d.Raw) {
			t.Errorf("%s is delivered with body %q, or twice; it was published with %q", d.OriginalID, d.Raw, waiting[d.OriginalID])
		}
		delete(waiting, d.OriginalID)
	}
	if len(waiting) != 0 {
		t.Errorf("%d messages were not delivered", len(waiting))
	}
}

// checkBatch holds the results of a batch against its messages and what was stored.
func checkBatch(t *testing.T, batch []xstreamq.Outgoing[[]byte], results []xstreamq.PublishResult, stored map[string]string) {
	t.Helper()
	var last wire.ID
	for i, result := range results {
		body, options := batch[i].Body, batch[i].Options
		var want error
		switch {
		case len(options) == 2:
			want = xstreamq.ErrInvalidMessage
		case len(body) > 100:
			want = xstreamq.ErrTooLarge
		}
		if want != nil {
			if !errors.Is(result.Err, want) || result.ID != "" {
				t.Errorf("message %d: %+v, want %v", i, result, want)
			}
			continue
		}
		if result.Err != nil || stored[result.ID] != string(body) {
			t.Errorf("message %d: %+v is stored as %q", i, result, stored[result.ID])
		}
		if strings.HasPrefix(result.ID, "d") != (len(options) == 1) {
			t.Errorf("message %d has id %s and %d options", i, result.ID, len(options))
		}
		if id, ok := wire.ParseID(result.ID); ok {
			if !last.Less(id) {
				t.Errorf("message %d has id %s, not above %s", i, id, last)
			}
			last = id
		}
	}
}

// PublishBatch: nothing, a context that has ended, and a queue that refuses.
func TestPublishBatchEdges(t *testing.T) {
	t.Parallel()
	var log publishLog
	r := newForeignRig(t, xstreamq.Config{Observer: log.observer()})
	if got := r.queue.PublishBatch(t.Context(), nil); len(got) != 0 {
		t.Errorf("results of nothing: %v", got)
	}
	r.fill(1001)
	r.do("DEL", r.key(""))
	if diff := cmp.Diff([]published{{"q", 0, nil}, {"q", 1001, nil}}, log.take(), cmp.AllowUnexported(published{})); diff != "" {
		t.Errorf("the observer was told (-want +got):\n%s", diff)
	}
	batch := []xstreamq.Outgoing[[]byte]{
		{Body: []byte("a")},
		{Body: []byte("b"), Options: []xstreamq.PublishOption{xstreamq.WithDelay(time.Hour)}},
		{Body: []byte("c")},
	}
	gone, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the caller went away")
	cancel(why)
	for i, result := range r.queue.PublishBatch(gone, batch) {
		if !errors.Is(result.Err, why) || errors.Is(result.Err, xstreamq.ErrPublishUncertain) || result.ID != "" {
			t.Errorf("message %d: %+v, want a certain refusal", i, result)
		}
	}
	if n := r.len("") + r.len(".delayed"); n != 0 {
		t.Errorf("%d messages are stored for a caller that had gone", n)
	}
	r.do("SET", r.key(""), "not a stream")
	for i, result := range r.queue.PublishBatch(t.Context(), batch) {
		if i == 1 {
			if result.Err != nil {
				t.Errorf("the delayed message: %v", result.Err)
			}
			continue
		}
		if result.Err == nil || !strings.Contains(result.Err.Error(), "WRONGTYPE") || errors.Is(result.Err, xstreamq.ErrPublishUncertain) {
			t.Errorf("message %d: %v, want WRONGTYPE, which is certain", i, result.Err)
		}
	}
}

// headers returns n headers, of so many bytes in all.
func headers(n, size int) []xstreamq.PublishOption {
	opts := make([]xstreamq.PublishOption, n)
	for i := range opts {
		name := fmt.Sprintf("%04d", i)
		value := ""
		if i == 0 {
			value = strings.Repeat("\x00", size-4*n)
		}
		opts[i] = xstreamq.WithHeader(name, value)
	}
	return opts
}

// Limits of Publish: what is at the limit is stored, what is above is refused with a reason and surely not stored.
func TestPublishLimits(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name    string
		max     int // MaxBodySize
		ctx     context.Context
		size    int
		options []xstreamq.PublishOption
		wrong   error
	}{
		{name: "empty body", size: 0},
		{name: "default size", size: 1 << 20},
		{name: "above the default size", size: 1<<20 + 1, wrong: xstreamq.ErrTooLarge},
		{name: "size set", max: 10, size: 10},
		{name: "above the size set", max: 10, size: 11, wrong: xstreamq.ErrTooLarge},
		{name: "large size set", max: 5 << 20, size: 5 << 20},
		{name: "1,000 headers", options: headers(1000, 4000)},
		{name: "1,001 headers", options: headers(1001, 4004), wrong: xstreamq.ErrTooLarge},
		{name: "64 KiB of headers", options: headers(3, 64<<10)},
		{name: "more than 64 KiB of headers", options: headers(3, 64<<10+1), wrong: xstreamq.ErrTooLarge},
		{name: "a header twice", options: []xstreamq.PublishOption{
			xstreamq.WithHeader("x", ""), xstreamq.WithHeader("y", "1"), xstreamq.WithHeader("x", "")}, wrong: xstreamq.ErrInvalidMessage},
		{name: "nil options", options: []xstreamq.PublishOption{nil, xstreamq.WithHeader("a", "b"), nil}},
		{name: "context that has ended", ctx: gone, wrong: context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, delay := range []time.Duration{0, time.Hour} {
				var log publishLog
				r := newForeignRig(t, xstreamq.Config{MaxBodySize: c.max, Observer: log.observer()})
				ctx := c.ctx
				if ctx == nil {
					ctx = t.Context()
				}
				options := append(slices.Clone(c.options), xstreamq.WithDelay(delay))
				id, err := r.queue.Publish(ctx, make([]byte, c.size), options...)
				stored := r.len("") + r.len(".delayed")
				want := int64(1)
				if c.wrong != nil {
					want = 0
				}
				if !errors.Is(err, c.wrong) || errors.Is(err, xstreamq.ErrPublishUncertain) || (id == "") != (want == 0) || stored != want {
					t.Errorf("id %q, error %v, %d stored", id, err, stored)
				}
				if calls := log.take(); len(calls) != 1 || calls[0] != (published{"q", int(want), err}) {
					t.Errorf("the observer was told %v", calls)
				}
			}
		})
	}
}

// Headers (P6): names and values of any bytes arrive as they were, at the first delivery and after retries, and in the
// dead-letter stream.
func TestHeadersSurvive(t *testing.T) {
	t.Parallel()
	var all [256]byte
	for i := range all {
		all[i] = byte(i)
	}
	want := map[string]string{
		"": "no name", "empty": "", string(all[:]): string(all[255:]) + string(all[:]), "traceparent": "00-1-2-01",
		"oid": "forged", "rc": "99", "body": "not the body", "h:": "h:", "\r\n": "\r\n", "xq:packed": "9:", "3:abc": "1:2",
	}
	for i := len(want); i < 1000; i++ {
		want[fmt.Sprint("name ", i)] = fmt.Sprint("value ", i)
	}
	var options []xstreamq.PublishOption
	for name, value := range want {
		options = append(options, xstreamq.WithHeader(name, value))
	}
	r := newForeignRig(t, xstreamq.Config{})
	var inbox foreignInbox
	dead := make(chan xstreamq.DeadMessage, 1)
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		inbox.add(m.Delivery)
		return errors.New("no")
	}, xstreamq.SubscribeOptions{
		MaxRetries: 1, Backoff: xstreamq.Backoff{Initial: time.Millisecond},
		OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
	})
	r.start()
	id := r.publish("b", options...)
	d := foreignAwait(t, dead)
	r.stop()
	if diff := cmp.Diff(want, d.Header); diff != "" || d.Failures != 2 || d.OriginalID != id {
		t.Errorf("the dead letter of %s has %d failures, its headers differ (-want +got):\n%.2000s", d.OriginalID, d.Failures, diff)
	}
	got := inbox.all()
	if len(got) != 2 {
		t.Fatalf("%d deliveries, want 2", len(got))
	}
	for _, m := range got {
		if diff := cmp.Diff(want, m.Header); diff != "" || m.OriginalID != id || string(m.Raw) != "b" {
			t.Errorf("delivery %+v: headers (-want +got):\n%.2000s", m.ID, diff)
		}
	}
}

// Publish works before Start and after Stop; after Close its error says that nothing was stored.
func TestPublishOutsideOfStartAndStop(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	r.publish("before Start")
	r.start()
	r.stop()
	r.publish("after Stop")
	if n := r.len(""); n != 2 {
		t.Errorf("%d messages are stored, want 2", n)
	}
	if err := r.client.Close(); err != nil {
		t.Fatal(err)
	}
	for _, delay := range []time.Duration{0, time.Hour} {
		_, err := r.queue.Publish(t.Context(), nil, xstreamq.WithDelay(delay))
		if err == nil || errors.Is(err, xstreamq.ErrPublishUncertain) {
			t.Errorf("after Close: %v, want an error that is certain", err)
		}
	}
}

// New leaves the caller's connection open, also at Close (P8).
func TestCloseLeavesCallersConnection(t *testing.T) {
	t.Parallel()
	rc := redistest.Client(t)
	c, err := xstreamq.New(rc, xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	q := foreignQueue[string](t, c, "q")
	if _, err := q.Subscribe("g", func(context.Context, *xstreamq.Message[string]) error { return nil }, xstreamq.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Start(t.Context()), c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if err := rc.Do(t.Context(), rc.B().Ping().Build()).Error(); err != nil {
		t.Errorf("the caller's connection after Close: %v", err)
	}
}
