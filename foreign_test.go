package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// strangeEntry is an entry as a client that knows nothing of the envelope may write it.
type strangeEntry struct {
	name   string
	fields []string
	oid    string // the original id it is believed to have; empty = that of its entry
}

func strangeEntries() []strangeEntry {
	many := make([]string, 0, 8200)
	many = append(many, "h:tenant", "a")
	for i := range 4098 {
		many = append(many, fmt.Sprintf("field %d", i), fmt.Sprint(i))
	}
	counters := func(v string) []string { return []string{"rc", v, "body", "b", "lc", v, "at", v, "pub", v} }
	return []strangeEntry{
		{name: "ordinary", fields: []string{"body", "b"}},
		{name: "no body", fields: []string{"x", "y", "h:a", "b"}},
		{name: "duplicate names", fields: []string{"k", "1", "body", "b", "k", "2", "h:a", "1", "h:a", "2", "k", "1"}},
		{name: "two bodies", fields: []string{"body", "first", "k", "1", "body", "second"}},
		{name: "4,100 fields", fields: append(many[:8198:8198], "body", "last")},
		{name: "4,100 fields, no body", fields: append(many[:8198:8198], "x", "y")},
		{name: "3,501 fields", fields: append(many[:7000:7000], "body", "b")},
		{name: "binary", fields: []string{"\x00\xff", "\xff\x00", "body", "\x00\xff\r\n\x00", "h:\xff", "\x00"}},
		{name: "20 MB", fields: []string{"body", strings.Repeat("\x00\xffab", 5<<20), "k", "1"}},
		{name: "empty body", fields: []string{"body", ""}},
		{name: "empty names", fields: []string{"", "v", "", "", "body", "b", "h:", ""}},
		{name: "names like the packed form", fields: []string{"3:abc", "1:2", "body", "4:body1:x", "0:", ":"}},
		{name: "reserved names", fields: []string{"rc", "99", "lc", "99", "err", "forged", "reason", "forged", "at", "1",
			"from", "1-1", "by", "me", "body", "b", "pub", "1", "k", "1"}},
		{name: "rc NaN", fields: counters("NaN")},
		{name: "rc -1", fields: counters("-1")},
		{name: "rc 1e400", fields: counters("1e400")},
		{name: "rc of 400 digits", fields: counters(strings.Repeat("9", 400))},
		{name: "rc empty", fields: counters("")},
		{name: "forged oid", fields: []string{"oid", "x", "body", "b"}},
		{name: "forged oid of another entry", fields: []string{"oid", "1-1", "body", "b"}},
		{name: "forged oid of a delayed message", fields: []string{"oid", "d1-ff", "body", "b", "rc", "99"}, oid: "d1-ff"},
		{name: "forged pack", fields: []string{
			"xq:packed", wire.Pack([]string{"rc", "99", "lc", "99", "oid", "x", "body", "z"}), "body", "b"}},
		{name: "broken pack", fields: []string{"xq:packed", "9:", "body", "b"}},
		{name: "ordinary, at the end", fields: []string{"body", "b"}},
	}
}

// entry is what must be left of it on its way, besides what the engine adds.
func (s strangeEntry) entry() foreignEntry { return foreignEntry{Fields: s.fields} }

// header is what a handler sees of it as headers: the first of each name.
func (s strangeEntry) header() map[string]string {
	var h map[string]string
	for i := len(s.fields) - 2; i >= 0; i -= 2 {
		if name, ok := strings.CutPrefix(s.fields[i], "h:"); ok {
			if h == nil {
				h = map[string]string{}
			}
			h[name] = s.fields[i+1]
		}
	}
	return h
}

// strangeFate is what happens to the deliveries of foreign entries in one test.
type strangeFate struct {
	name    string
	verdict func(d xstreamq.Delivery, nth int) error
	opts    xstreamq.SubscribeOptions
	vanish  bool
	wants   []xstreamq.Delivery // counters of each delivery
	dead    xstreamq.Reason     // where an entry with a body ends; empty = handled
}

// Foreign entries (P6, P8): whatever a plain client adds is handled or dead, byte-exact, and holds up no other.
func TestForeignEntries(t *testing.T) {
	t.Parallel()
	fail := errors.New("not this time")
	quick := xstreamq.Backoff{Initial: 5 * time.Millisecond}
	first := xstreamq.Delivery{Attempt: 1}
	for _, fate := range []strangeFate{
		{
			name:    "handled",
			verdict: func(xstreamq.Delivery, int) error { return nil },
			wants:   []xstreamq.Delivery{first},
		},
		{
			name: "retried",
			verdict: func(_ xstreamq.Delivery, nth int) error {
				if nth < 3 {
					return fail
				}
				return nil
			},
			opts:  xstreamq.SubscribeOptions{Backoff: quick},
			wants: []xstreamq.Delivery{first, {Attempt: 2, Retries: 1}, {Attempt: 3, Retries: 2}},
		},
		{
			name:    "dead",
			verdict: func(xstreamq.Delivery, int) error { return fail },
			opts:    xstreamq.SubscribeOptions{Backoff: quick, MaxRetries: 1},
			wants:   []xstreamq.Delivery{first, {Attempt: 2, Retries: 1}},
			dead:    xstreamq.Failed,
		},
		{
			name: "released",
			verdict: func(_ xstreamq.Delivery, nth int) error {
				if nth == 1 {
					return xstreamq.Release(fail)
				}
				return nil
			},
			opts:  xstreamq.SubscribeOptions{Backoff: quick},
			wants: []xstreamq.Delivery{first, first},
		},
		{
			name:    "worker vanished",
			verdict: func(xstreamq.Delivery, int) error { return nil },
			opts:    xstreamq.SubscribeOptions{VisibilityTimeout: 2 * time.Second},
			vanish:  true,
			wants:   []xstreamq.Delivery{{Attempt: 2, LostLeases: 1}},
		},
	} {
		t.Run(fate.name, func(t *testing.T) {
			t.Parallel()
			testStrangeFate(t, fate)
		})
	}
}

func testStrangeFate(t *testing.T, fate strangeFate) {
	r := newForeignRig(t, xstreamq.Config{})
	var inbox foreignInbox
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		if string(m.Body) != string(m.Raw) {
			t.Errorf("%s: Body differs from Raw", m.ID)
		}
		inbox.add(m.Delivery)
		return fate.verdict(m.Delivery, len(inbox.of(m.OriginalID)))
	}, fate.opts)

	entries := strangeEntries()
	ids := make([]string, len(entries))
	for i, s := range entries {
		ids[i] = r.add(s.fields...)
	}
	if fate.vanish {
		r.vanish("g", "1000")
	}
	r.start()
	r.waitEnded("g")
	r.stop()

	dead := map[string]foreignEntry{}
	for _, e := range r.entries(".g.dlq") {
		dead[e.get("oid")] = e
	}
	deaths := 0
	for i, s := range entries {
		t.Run(s.name, func(t *testing.T) {
			oid := s.oid
			if oid == "" {
				oid = ids[i]
			}
			if body := s.entry().all("body"); len(body) > 0 {
				checkStrangeDeliveries(t, inbox.of(oid), body[0], s.header(), fate.wants)
				if fate.dead == "" {
					return
				}
				deaths++
				checkStrangeDeath(t, dead[oid], s, fate.dead, "2")
				return
			}
			if n := len(inbox.of(oid)); n != 0 {
				t.Errorf("the handler got an entry without a body %d times", n)
			}
			deaths++
			checkStrangeDeath(t, dead[oid], s, xstreamq.NoBody, "")
		})
	}
	if n := r.len(".g.dlq"); n != int64(deaths) {
		t.Errorf("%d dead letters, want %d", n, deaths)
	}
}

func checkStrangeDeliveries(
	t *testing.T, got []xstreamq.Delivery, body string, header map[string]string, wants []xstreamq.Delivery,
) {
	t.Helper()
	type counters struct{ Attempt, Retries, LostLeases int }
	var have, want []counters
	for _, d := range got {
		have = append(have, counters{d.Attempt, d.Retries, d.LostLeases})
		if string(d.Raw) != body {
			t.Errorf("attempt %d: the body has %d bytes that differ from the %d published", d.Attempt, len(d.Raw), len(body))
		}
		if diff := cmp.Diff(header, d.Header); diff != "" {
			t.Errorf("attempt %d: headers (-want +got):\n%s", d.Attempt, diff)
		}
	}
	for _, d := range wants {
		want = append(want, counters{d.Attempt, d.Retries, d.LostLeases})
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("counters of the deliveries (-want +got):\n%s", diff)
	}
}

func checkStrangeDeath(t *testing.T, dead foreignEntry, s strangeEntry, reason xstreamq.Reason, failures string) {
	t.Helper()
	if dead.ID == "" {
		t.Error("it is not among the dead letters")
		return
	}
	if got := dead.get("reason"); got != string(reason) {
		t.Errorf("reason %q, want %q", got, reason)
	}
	if got := strings.Join(dead.all("rc"), ","); got != failures {
		t.Errorf("rc %q, want %q", got, failures)
	}
	if got := dead.all("lc"); got != nil {
		t.Errorf("lc %q, want none", got)
	}
	for _, name := range []string{"oid", "at", "from", "by"} {
		if len(dead.all(name)) != 1 {
			t.Errorf("%s: %q, want one value", name, dead.all(name))
		}
	}
	want := s.entry().strangers(t, false)
	if diff := cmp.Diff(want, dead.strangers(t, len(want) > 7000)); diff != "" {
		t.Errorf("the fields changed on the way (-want +got):\n%.2000s", diff)
	}
}

// Body lost (P6): entries that were deleted or trimmed under a worker that vanished leave a tombstone each, and what is left goes on.
func TestEntriesGoneUnderVanishedWorker(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{CompactEvery: -1})
	trimmed := r.add("body", "trimmed")
	deleted := r.add("body", "deleted", "h:a", "b")
	left := r.add("body", "left")
	r.vanish("g", "500")
	r.do("XDEL", r.key(""), deleted)
	r.do("XTRIM", r.key(""), "MINID", deleted)

	var inbox foreignInbox
	deaths := make(chan xstreamq.DeadMessage, 10)
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		inbox.add(m.Delivery)
		return nil
	}, xstreamq.SubscribeOptions{
		VisibilityTimeout: time.Second,
		OnDeadLetter:      func(_ context.Context, d xstreamq.DeadMessage) { deaths <- d },
	})
	r.start()
	r.waitEnded("g")
	r.stop()

	if got := inbox.all(); len(got) != 1 || got[0].OriginalID != left || string(got[0].Raw) != "left" {
		t.Errorf("handled %v, want %s alone", got, left)
	}
	told := map[string]xstreamq.DeadMessage{}
	for range 2 {
		d := foreignAwait(t, deaths)
		told[d.OriginalID] = d
	}
	tombstones := r.entries(".g.dlq")
	if len(tombstones) != 2 {
		t.Fatalf("%d dead letters, want 2", len(tombstones))
	}
	for _, id := range []string{trimmed, deleted} {
		d := told[id]
		if d.Reason != xstreamq.BodyLost || d.Body != nil || d.From != id || d.By != "vanished~500" || d.At.IsZero() {
			t.Errorf("dead letter of %s: %+v", id, d)
		}
	}
}

// Gone while held (P6): the entry is deleted or trimmed in mid-handler, the handler fails, and the body comes again all the same, also
// from the retry stream, and ends whole in the dead-letter stream.
func TestEntryGoneUnderFailingHandler(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{CompactEvery: -1})
	gate := newHeldGate()
	r.subscribe("g", gate.handle, xstreamq.SubscribeOptions{
		Concurrency: 1, Prefetch: -1, MaxRetries: 2, Backoff: xstreamq.Backoff{Initial: 5 * time.Millisecond},
	})
	r.start()
	fields := []string{"body", "\x00only copy\xff", "h:a", "b", "mine", "1", "mine", "2"}
	id := r.add(fields...)
	fail := errors.New("no")

	gone := []func(d xstreamq.Delivery){
		func(d xstreamq.Delivery) { r.do("XTRIM", r.key(""), "MAXLEN", "0") },
		func(d xstreamq.Delivery) { r.do("XDEL", r.key(".g.retry"), d.ID) },
		func(d xstreamq.Delivery) { r.do("XTRIM", r.key(".g.retry"), "MAXLEN", "0") },
	}
	for i, remove := range gone {
		d := gate.next(t)
		if d.OriginalID != id || string(d.Raw) != fields[1] || d.Retries != i || d.LostLeases != 0 || d.Header["a"] != "b" {
			t.Fatalf("delivery %d: %+v", i+1, d)
		}
		remove(d)
		gate.out <- fail
	}
	r.waitEnded("g")
	r.stop()
	dead := r.entries(".g.dlq")
	if len(dead) != 1 {
		t.Fatalf("%d dead letters, want 1", len(dead))
	}
	if dead[0].get("reason") != "failed" || dead[0].get("rc") != "3" || dead[0].get("oid") != id || dead[0].get("err") != "no" {
		t.Errorf("dead letter %q", dead[0].Fields)
	}
	if diff := cmp.Diff(fields, dead[0].strangers(t, false)); diff != "" {
		t.Errorf("the fields changed (-want +got):\n%s", diff)
	}
}

// Gone while held: a handler that succeeds all the same ends its message, and nothing is left of it anywhere.
func TestEntryGoneUnderSucceedingHandler(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	gate := newHeldGate()
	r.subscribe("g", gate.handle, xstreamq.SubscribeOptions{})
	r.start()
	id := r.add("body", "b")
	gate.next(t)
	r.do("XDEL", r.key(""), id)
	gate.out <- nil
	r.waitEnded("g")
	if n := r.len(".g.dlq"); n != 0 {
		t.Errorf("%d dead letters of a handled message", n)
	}
}

// Gone while held: with a lease that cannot be renewed any more, the sweep writes one tombstone, and the handler's late failure
// writes no second one.
func TestEntryGoneUnderLongHandler(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	gate := newHeldGate()
	r.subscribe("g", gate.handle, xstreamq.SubscribeOptions{VisibilityTimeout: 500 * time.Millisecond})
	r.start()
	id := r.add("body", "b")
	gate.next(t)
	r.do("XDEL", r.key(""), id)
	redistest.WaitFor(t, foreignWait, "a tombstone", func() bool { return r.len(".g.dlq") == 1 })
	gate.out <- errors.New("too late")
	r.waitEnded("g")
	r.stop()
	dead := r.entries(".g.dlq")
	if len(dead) != 1 || dead[0].get("reason") != "body-lost" || dead[0].get("oid") != id {
		t.Errorf("dead letters %q", dead)
	}
}
