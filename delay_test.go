package xstreamq_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// serverNow is the clock that due times are held against.
func (r *foreignRig) serverNow() time.Time {
	r.t.Helper()
	parts, err := r.redis.Do(context.Background(), r.redis.B().Time().Build()).AsIntSlice()
	if err != nil {
		r.t.Fatal(err)
	}
	return time.Unix(parts[0], parts[1]*1000)
}

// idTime is the server's time, in ms, at which a stream entry was written.
func idTime(t *testing.T, id string) time.Time {
	t.Helper()
	parsed, ok := wire.ParseID(id)
	if !ok {
		t.Fatalf("%q is not a stream id", id)
	}
	return time.UnixMilli(int64(parsed.Ms))
}

// dueTime is when a delayed message is due, as its id says.
func dueTime(t *testing.T, id string) time.Time {
	t.Helper()
	ms, _, ok := strings.Cut(strings.TrimPrefix(id, "d"), "-")
	due, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil {
		t.Fatalf("%q is not the id of a delayed message", id)
	}
	return time.UnixMilli(due)
}

// Delay longer than the lease (P1, P3): delivered once, never before it is due, and as a rule within 500 ms after.
func TestDelayLongerThanLease(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	var inbox foreignInbox
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		inbox.add(m.Delivery)
		return nil
	}, xstreamq.SubscribeOptions{VisibilityTimeout: 400 * time.Millisecond})
	r.start()

	asked := map[string]time.Time{}
	for i := range 12 {
		delay := 1500*time.Millisecond + time.Duration(i)*70*time.Millisecond
		before := r.serverNow()
		asked[r.publish("later", xstreamq.WithDelay(delay))] = before.Add(delay)
	}
	redistest.WaitFor(t, foreignWait, "12 deliveries", func() bool { return inbox.len() >= len(asked) })
	r.waitEnded("g")
	r.stop()

	var late []time.Duration
	for id, earliest := range asked {
		got := inbox.of(id)
		if len(got) != 1 {
			t.Errorf("%s was delivered %d times", id, len(got))
			continue
		}
		due, written := dueTime(t, id), idTime(t, got[0].ID)
		if due.Before(earliest.Truncate(time.Millisecond)) {
			t.Errorf("%s is due at %v, asked for %v", id, due, earliest)
		}
		if written.Before(due) {
			t.Errorf("%s came %v early", id, due.Sub(written))
		}
		late = append(late, written.Sub(due))
	}
	checkLateness(t, late)
}

// checkLateness fails when messages as a rule come more than 500ms after they are due: a busy machine delays a few, a slow loop
// delays them all.
func checkLateness(t *testing.T, late []time.Duration) {
	t.Helper()
	slices.Sort(late)
	if len(late) == 0 || late[0] < 0 || late[len(late)/2] > 500*time.Millisecond {
		t.Errorf("messages came so long after they were due: %v; want half of them within 500ms, and none early", late)
	}
}

// Delays: a short delay is kept as well when nobody knew that something would become due.
func TestShortDelayAfterNothing(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	got := make(chan xstreamq.Delivery, 10)
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		got <- m.Delivery
		return nil
	}, xstreamq.SubscribeOptions{})
	r.start()
	var late []time.Duration
	for range 5 {
		r.waitRounds("promoter", 1)
		id := r.publish("soon", xstreamq.WithDelay(20*time.Millisecond))
		d := foreignAwait(t, got)
		if d.OriginalID != id {
			t.Fatalf("got %s, want %s", d.OriginalID, id)
		}
		late = append(late, idTime(t, d.ID).Sub(dueTime(t, id)))
	}
	checkLateness(t, late)
}

// Delays: a message that is far from due does not hold up one that is due before it, whichever was published first.
func TestFarFutureBlocksNobody(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	var inbox foreignInbox
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		inbox.add(m.Delivery)
		return nil
	}, xstreamq.SubscribeOptions{})
	r.publish("far", xstreamq.WithDelay(24*time.Hour))
	r.publish("farther", xstreamq.WithDelay(1<<63-1))
	r.publish("far", xstreamq.WithDeliverAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)))
	r.start()
	for _, delay := range []time.Duration{700 * time.Millisecond, 20 * time.Millisecond} {
		r.publish("soon", xstreamq.WithDelay(delay))
	}
	redistest.WaitFor(t, foreignWait, "both due messages", func() bool { return inbox.len() == 2 })
	if n := r.len(".delayed"); n != 3 {
		t.Errorf("%d messages wait, want the 3 far ones", n)
	}
}

// Delays: what may come at once comes at once, and a year that no clock reaches is refused.
func TestDelayEdges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		option xstreamq.PublishOption
		id     string // how the id begins; empty = an entry's
		wrong  error
	}{
		{name: "no delay", option: xstreamq.WithDelay(0)},
		{name: "negative delay", option: xstreamq.WithDelay(-time.Hour)},
		{name: "the longest negative delay", option: xstreamq.WithDelay(-1 << 63)},
		{name: "less than a millisecond", option: xstreamq.WithDelay(1), id: "d"},
		{name: "no time", option: xstreamq.WithDeliverAt(time.Time{})},
		{name: "the past", option: xstreamq.WithDeliverAt(time.Now().Add(-time.Hour)), id: "d"},
		{name: "before 1970", option: xstreamq.WithDeliverAt(time.Unix(-5, 0)), id: "d0-"},
		{name: "year 10000", option: xstreamq.WithDeliverAt(time.Date(10000, 1, 2, 0, 0, 0, 0, time.UTC)),
			wrong: xstreamq.ErrInvalidMessage},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newForeignRig(t, xstreamq.Config{})
			got := make(chan xstreamq.Delivery, 1)
			r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
				got <- m.Delivery
				return nil
			}, xstreamq.SubscribeOptions{})
			r.start()
			id, err := r.queue.Publish(t.Context(), []byte("b"), c.option)
			if !errors.Is(err, c.wrong) || (c.wrong == nil) != (err == nil) {
				t.Fatalf("error %v, want %v", err, c.wrong)
			}
			if c.wrong != nil {
				if id != "" || r.len(".delayed") != 0 {
					t.Errorf("refused, and yet stored as %q", id)
				}
				return
			}
			if d := foreignAwait(t, got); d.OriginalID != id || !strings.HasPrefix(id, c.id) || (c.id == "") != (d.ID == id) {
				t.Errorf("published as %q, delivered as %q, original %q", id, d.ID, d.OriginalID)
			}
		})
	}
}

// Delays: body, headers, id and publish time survive the wait, every retry after it, and the dead-letter stream.
func TestDelayedMessageKeepsItself(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		option func(now time.Time) xstreamq.PublishOption
	}{
		{"WithDelay", func(time.Time) xstreamq.PublishOption { return xstreamq.WithDelay(300 * time.Millisecond) }},
		{"WithDeliverAt", func(now time.Time) xstreamq.PublishOption {
			return xstreamq.WithDeliverAt(now.Add(300 * time.Millisecond))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newForeignRig(t, xstreamq.Config{})
			var inbox foreignInbox
			dead := make(chan xstreamq.DeadMessage, 1)
			r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
				inbox.add(m.Delivery)
				return errors.New("no")
			}, xstreamq.SubscribeOptions{
				MaxRetries: 2, Backoff: xstreamq.Backoff{Initial: 5 * time.Millisecond},
				OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
			})
			r.start()
			header := map[string]string{"tenant": "a", "\x00": "\xff", "": "empty name"}
			before := r.serverNow()
			id := r.publish("\x00later\xff", c.option(before), xstreamq.WithHeader("tenant", "a"),
				xstreamq.WithHeader("\x00", "\xff"), xstreamq.WithHeader("", "empty name"))
			after := r.serverNow()
			d := foreignAwait(t, dead)
			r.stop()

			checkDue(t, id, before, after)
			got := inbox.all()
			if len(got) != 3 {
				t.Fatalf("%d deliveries, want 3", len(got))
			}
			for i, m := range got {
				want := xstreamq.Delivery{
					Raw: []byte("\x00later\xff"), Header: header, ID: m.ID, OriginalID: id, Queue: "q", Group: "g",
					Attempt: i + 1, Retries: i, PublishedAt: m.PublishedAt,
				}
				if diff := cmp.Diff(want, m); diff != "" {
					t.Errorf("delivery %d (-want +got):\n%s", i+1, diff)
				}
				checkPublished(t, m.PublishedAt, before, after)
				if idTime(t, m.ID).Before(dueTime(t, id)) {
					t.Errorf("delivery %d has entry %s, before it was due", i+1, m.ID)
				}
			}
			if d.OriginalID != id || string(d.Body) != "\x00later\xff" || d.Failures != 3 || d.Reason != xstreamq.Failed {
				t.Errorf("dead letter %+v", d)
			}
			if diff := cmp.Diff(header, d.Header); diff != "" {
				t.Errorf("headers of the dead letter (-want +got):\n%s", diff)
			}
			pub, err := strconv.ParseInt(r.entries(".g.dlq")[0].get("pub"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			checkPublished(t, time.UnixMilli(pub), before, after)
		})
	}
}

// checkDue holds the due time in an id against what was asked: 300ms after some time between before and after.
func checkDue(t *testing.T, id string, before, after time.Time) {
	t.Helper()
	due := dueTime(t, id)
	if due.Before(before.Add(299*time.Millisecond)) || due.After(after.Add(301*time.Millisecond)) {
		t.Errorf("%s is not due 300ms after its publish between %d and %d", id, before.UnixMilli(), after.UnixMilli())
	}
}

func checkPublished(t *testing.T, at, before, after time.Time) {
	t.Helper()
	if at.Before(before.Truncate(time.Millisecond)) || at.After(after) {
		t.Errorf("published at %d, want between %d and %d", at.UnixMilli(), before.UnixMilli(), after.UnixMilli())
	}
}

// PublishedAt: a message that was not delayed has the time of its publish too, and keeps it over retries; a foreign id that is no
// time tells none.
func TestPublishedAt(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	var inbox foreignInbox
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		inbox.add(m.Delivery)
		if m.Retries < 2 {
			return errors.New("again")
		}
		return nil
	}, xstreamq.SubscribeOptions{Backoff: xstreamq.Backoff{Initial: time.Millisecond}})
	before := r.serverNow()
	id := r.publish("b")
	after := r.serverNow()
	r.do("XADD", r.key(""), "18446744073709551000-1", "body", "b")
	r.start()
	r.waitEnded("g")
	r.stop()
	got := inbox.of(id)
	if len(got) != 3 {
		t.Fatalf("%d deliveries of %s, want 3", len(got), id)
	}
	for _, d := range got {
		checkPublished(t, d.PublishedAt, before, after)
	}
	for _, d := range inbox.of("18446744073709551000-1") {
		if !d.PublishedAt.IsZero() {
			t.Errorf("the id %s tells the time %v", d.OriginalID, d.PublishedAt)
		}
	}
}

// Retries part (P5): messages that fail together do not come back together.
func TestRetriesOfManyFailuresSpread(t *testing.T) {
	t.Parallel()
	const n = 200
	r := newForeignRig(t, xstreamq.Config{})
	r.subscribe("g", func(context.Context, *xstreamq.Message[[]byte]) error {
		return errors.New("all at once")
	}, xstreamq.SubscribeOptions{Concurrency: 50, Backoff: xstreamq.Backoff{Initial: time.Hour}})
	for range n {
		r.publish("b")
	}
	r.start()
	redistest.WaitFor(t, foreignWait, "all of them failed", func() bool { return r.len(".g.delayed") == n })
	r.stop()
	scores, err := r.do("ZRANGE", r.key(".g.delayed"), "0", "-1", "WITHSCORES").AsZScores()
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[float64]bool{}
	for _, s := range scores {
		distinct[s.Score] = true
	}
	spread := time.Duration(scores[n-1].Score-scores[0].Score) * time.Millisecond
	if len(distinct) < n*9/10 || spread < 20*time.Minute || spread > 35*time.Minute {
		t.Errorf("%d messages are due at %d times within %v; want about %d within half an hour", n, len(distinct), spread, n)
	}
}
