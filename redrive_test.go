package xstreamq_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// deadSubscribe subscribes with a short backoff.
func deadSubscribe(t *testing.T, q *xstreamq.Queue[string], group string, o xstreamq.SubscribeOptions, handle xstreamq.Handler[string]) {
	t.Helper()
	o.Backoff = xstreamq.Backoff{Initial: 10 * time.Millisecond, Max: 10 * time.Millisecond}
	if _, err := q.Subscribe(group, handle, o); err != nil {
		t.Fatal(err)
	}
}

// A redriven message runs again, in its own group alone, with its id, its headers and fresh budgets; with Dedupe too.
func TestRedrivenMessageRunsInItsGroupAlone(t *testing.T) {
	t.Parallel()
	for _, dedupe := range []time.Duration{0, time.Hour} {
		t.Run(dedupe.String(), func(t *testing.T) {
			t.Parallel()
			r := newLeaseRig(t)
			c, q := r.open(xstreamq.Config{})
			mine, other := make(chan xstreamq.Delivery, 10), make(chan xstreamq.Delivery, 10)
			dead := make(chan xstreamq.DeadMessage, 10)
			o := xstreamq.SubscribeOptions{MaxRetries: 1, Dedupe: dedupe, OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d }}
			var heal atomic.Bool
			deadSubscribe(t, q, "g", o, func(_ context.Context, m *xstreamq.Message[string]) error {
				mine <- m.Delivery
				if heal.Load() {
					return nil
				}
				return errors.New("boom")
			})
			deadSubscribe(t, q, "other", xstreamq.SubscribeOptions{}, func(_ context.Context, m *xstreamq.Message[string]) error {
				other <- m.Delivery
				return nil
			})
			if err := c.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			id, err := q.Publish(t.Context(), "a", xstreamq.WithHeader("tenant", "acme"))
			if err != nil {
				t.Fatal(err)
			}
			d := leaseTake(t, dead, "the dead letter")
			leaseTake(t, mine, "the first attempt")
			leaseTake(t, mine, "the second")
			leaseTake(t, other, "the other group's")
			heal.Store(true)
			if dedupe > 0 {
				// As if a handler had succeeded after its lease was lost.
				r.ask("ZADD", r.keys.Done, strconv.FormatInt(r.now().Add(time.Hour).UnixMilli(), 10), id)
			}

			got, err := c.Redrive(t.Context(), "q", "g", []string{d.ID}, xstreamq.RedriveOptions{})
			if diff := cmp.Diff(xstreamq.RedriveResult{Redriven: []string{d.ID}}, got); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
			m := leaseTake(t, mine, "the redriven message")
			want := xstreamq.Delivery{
				Raw: []byte("a"), Header: map[string]string{"tenant": "acme"}, ID: m.ID, OriginalID: id, Queue: "q", Group: "g", Attempt: 1,
				PublishedAt: d.At,
			}
			m.PublishedAt = d.At
			if diff := cmp.Diff(want, m); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			redistest.WaitFor(t, leasePatience, "everything finished", func() bool { return len(r.places()) == 0 })
			if len(mine) > 0 || len(other) > 0 {
				t.Errorf("%d more deliveries in the group, %d in the other", len(mine), len(other))
			}
		})
	}
}

// ToQueue publishes a dead letter anew, with a new id, to every group.
func TestRedriveToQueueReachesEveryGroup(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 3)
	var mu sync.Mutex
	got := map[string][]string{}
	c := r.client
	q, err := xstreamq.NewQueue(c, "q", xstreamq.WithCodec[string](xstreamq.String{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"g", "h"} {
		deadSubscribe(t, q, group, xstreamq.SubscribeOptions{}, func(_ context.Context, m *xstreamq.Message[string]) error {
			mu.Lock()
			defer mu.Unlock()
			if m.OriginalID != m.ID || m.Attempt != 1 {
				t.Errorf("not a new message: %+v", m.Delivery)
			}
			got[group] = append(got[group], m.Body)
			return nil
		})
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	result, err := c.Redrive(t.Context(), "q", "g", []string{"1-0", "3-0"}, xstreamq.RedriveOptions{ToQueue: true})
	if diff := cmp.Diff(xstreamq.RedriveResult{Redriven: []string{"1-0", "3-0"}}, result); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	redistest.WaitFor(t, leasePatience, "two messages in each group", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got["g"]) >= 2 && len(got["h"]) >= 2
	})
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for group, bodies := range got {
		slices.Sort(bodies)
		if diff := cmp.Diff([]string{`{"n":1}`, `{"n":3}`}, bodies); diff != "" {
			t.Errorf("group %s, -want +got:\n%s", group, diff)
		}
	}
	if diff := cmp.Diff([]string{"2-1"}, r.originals(r.keys.DLQ)); diff != "" || r.len(r.keys.Retry) != 0 {
		t.Errorf("%d to be retried; dead: -want +got:\n%s", r.len(r.keys.Retry), diff)
	}
}

// Each id gets its answer, however many there are, and what cannot be redriven stays.
func TestRedriveAnswersForEachID(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	ids := r.bury(1, 250)
	r.buryFields("251-0", "x", "y", "oid", "251-1", "reason", "no-body")
	r.buryFields("252-0", "oid", "252-1", "reason", "body-lost")
	asked := append([]string{"7-0", "00252-0", "7-7"}, ids...)
	asked = append(asked, "251-0", "7-7")
	got, err := r.client.Redrive(t.Context(), "q", "g", asked, xstreamq.RedriveOptions{})
	want := xstreamq.RedriveResult{
		Redriven:     slices.Concat([]string{"7-0"}, ids[:6], ids[7:]),
		Unredrivable: []xstreamq.Unredrivable{{ID: "252-0", Reason: "body-lost"}, {ID: "7-7", Reason: xstreamq.Gone}, {ID: "251-0", Reason: "no-body"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"251-1", "252-1"}, r.originals(r.keys.DLQ)); diff != "" {
		t.Errorf("dead: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(deadNumbers(1, 250, 1), r.originals(r.keys.Retry)); diff != "" {
		t.Errorf("to be retried: -want +got:\n%s", diff)
	}
	none, err := r.client.Redrive(t.Context(), "q", "g", nil, xstreamq.RedriveOptions{})
	if diff := cmp.Diff(xstreamq.RedriveResult{}, none); diff != "" || err != nil {
		t.Errorf("no ids: %v, %s", err, diff)
	}
}

// Bodies that fill several calls: none is left out, and every byte arrives.
func TestRedriveOfLargeBodies(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	large := strings.Repeat("\x00\xff", 200<<10)
	var ids, want []string
	for n := range 14 {
		id := strconv.Itoa(n+1) + "-0"
		ids = append(ids, r.buryFields(id, "body", large+id, "oid", id, "reason", "failed"))
		want = append(want, large+id)
	}
	one, err := r.client.Redrive(t.Context(), "q", "g", ids[:7], xstreamq.RedriveOptions{})
	if diff := cmp.Diff(xstreamq.RedriveResult{Redriven: ids[:7]}, one); diff != "" || err != nil {
		t.Errorf("Redrive: %v, -want +got:\n%s", err, diff)
	}
	all, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{})
	if diff := cmp.Diff(xstreamq.RedriveResult{Redriven: ids[7:]}, all); diff != "" || err != nil {
		t.Errorf("RedriveAll: %v, -want +got:\n%s", err, diff)
	}
	for i, e := range r.raw(r.keys.Retry) {
		if !slices.Equal(e, []string{"body", want[i], "oid", ids[i]}) {
			t.Errorf("entry %d differs", i)
		}
	}
}

// When many ask for the same at once, each dead letter is redriven by one of them.
func TestRedrivesAtOnceRedriveOnce(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	ids := r.bury(1, 500)
	var wg sync.WaitGroup
	results := make([]xstreamq.RedriveResult, 8)
	for i := range results {
		wg.Go(func() {
			var err error
			if results[i], err = r.client.Redrive(t.Context(), "q", "g", ids, xstreamq.RedriveOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	var redriven []string
	for _, result := range results {
		redriven = append(redriven, result.Redriven...)
		if len(result.Redriven)+len(result.Unredrivable) != len(ids) {
			t.Errorf("%d redriven, %d not, of %d", len(result.Redriven), len(result.Unredrivable), len(ids))
		}
	}
	slices.Sort(redriven)
	slices.Sort(ids)
	if diff := cmp.Diff(ids, redriven); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(deadNumbers(1, 500, 1), r.originals(r.keys.Retry)); diff != "" {
		t.Errorf("to be retried: -want +got:\n%s", diff)
	}
}

// A reply that is lost leaves open what was done. The same call again doubles nothing.
func TestRedriveAfterALostReply(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.URL(t))
	prefix := redistest.Prefix(t)
	r := deadRigAt(t, redistest.URL(t), prefix)
	ids := r.bury(1, 30)
	c := deadRigAt(t, proxy.URL(), prefix).client
	// The server knows the script by now, and the connection is there.
	if _, err := c.Redrive(t.Context(), "q", "g", ids[:10], xstreamq.RedriveOptions{}); err != nil {
		t.Fatal(err)
	}
	cut := proxy.CutAfterRequest([]byte("20-0"))
	got, err := c.Redrive(t.Context(), "q", "g", ids, xstreamq.RedriveOptions{})
	<-cut
	if err == nil || len(got.Redriven) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	if diff := cmp.Diff(deadNumbers(1, 30, 1), r.originals(r.keys.Retry)); diff != "" {
		t.Errorf("it was carried out: -want +got:\n%s", diff)
	}
	got, err = c.Redrive(t.Context(), "q", "g", ids, xstreamq.RedriveOptions{})
	if err != nil || len(got.Redriven) > 0 || len(got.Unredrivable) != 30 || got.Unredrivable[0].Reason != xstreamq.Gone {
		t.Errorf("%v, %v", got, err)
	}
	if n := r.len(r.keys.Retry); n != 30 || r.len(r.keys.DLQ) != 0 {
		t.Errorf("%d to be retried", n)
	}
}

// A place of the wrong type, a missing permission or a full server: the dead letter stays where it is, or moves, and the error
// names the key and the cause.
func TestRedriveRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--maxmemory-policy", "noeviction"}})
	admin := deadRigAt(t, server.URL(), "app:")
	admin.ask("ACL", "SETUSER", "app", "on", ">secret", "~*", "+@all", "-xdel")
	noXdel := deadRigAt(t, "redis://app:secret@"+server.Addr(), "app:")
	ids := admin.bury(1, 3)
	calls := map[string]func(c *xstreamq.Client) error{
		"Redrive": func(c *xstreamq.Client) error {
			_, err := c.Redrive(t.Context(), "q", "g", ids, xstreamq.RedriveOptions{})
			return err
		},
		"RedriveAll": func(c *xstreamq.Client) error {
			_, err := c.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{})
			return err
		},
		"ToQueue": func(c *xstreamq.Client) error {
			_, err := c.Redrive(t.Context(), "q", "g", ids, xstreamq.RedriveOptions{ToQueue: true})
			return err
		},
	}
	refused := func(client *xstreamq.Client, what string, names []string, parts ...string) {
		t.Helper()
		for _, name := range names {
			err := calls[name](client)
			if err == nil {
				t.Errorf("%s, %s: no error", what, name)
				continue
			}
			for _, part := range append(parts, `queue "q", group "g"`) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s, %s: %v does not say %s", what, name, err, part)
				}
			}
		}
		if n := admin.len(admin.keys.DLQ); n != 3 {
			t.Fatalf("%s: %d dead letters are left", what, n)
		}
	}
	toGroup := []string{"Redrive", "RedriveAll"}
	all := append([]string{"ToQueue"}, toGroup...)

	admin.ask("SET", admin.keys.Retry, "x")
	refused(admin.client, "retry stream of the wrong type", toGroup, "XQTYPE", admin.keys.Retry, "string")
	admin.ask("DEL", admin.keys.Retry)
	admin.ask("HSET", admin.keys.Done, "x", "y")
	refused(admin.client, "markers of the wrong type", toGroup, "XQTYPE", admin.keys.Done, "hash")
	admin.ask("DEL", admin.keys.Done)
	admin.ask("SET", admin.keys.Queue, "x")
	refused(admin.client, "queue of the wrong type", []string{"ToQueue"}, "XQTYPE", admin.keys.Queue, "string")
	admin.ask("DEL", admin.keys.Queue)
	refused(noXdel.client, "without XDEL", all) // which key it was about Redis does not say
	for _, key := range []string{admin.keys.Retry, admin.keys.Queue} {
		if n := admin.len(key); n != 0 {
			t.Errorf("%d entries in %s, from calls that were refused", n, key)
		}
	}

	admin.ask("CONFIG", "SET", "maxmemory", "1")
	got, err := admin.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{})
	admin.ask("CONFIG", "SET", "maxmemory", "0")
	if diff := cmp.Diff(xstreamq.RedriveResult{Redriven: ids}, got); diff != "" || err != nil {
		t.Errorf("a full server: %v, -want +got:\n%s", err, diff)
	}
}

// Whatever stands in the dead-letter stream: it is shown, a dry run knows what will happen, a redrive takes all that has a body, and
// every byte of it arrives.
func TestAnyDeadLetterCanBeHandled(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	own := []string{"oid", "pub", "rc", "lc", "err", "reason", "at", "from", "by"}
	name := rapid.OneOf(
		rapid.SampledFrom(append([]string{"body", "body", "h:a", "h:", "xq:packed", ""}, own...)), rapid.StringN(0, 5, -1), deadBytes,
	)
	value := rapid.OneOf(rapid.SampledFrom([]string{
		"", "1-1", "d5-ff", "-1", "1e400", "NaN", "body-lost", "no-body", "failed", "18446744073709551615", "3:h:k1:v", "\x00",
	}), deadBytes)
	number := 0
	rapid.Check(t, func(rt *rapid.T) {
		pairs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]string { return [2]string{name.Draw(t, "name"), value.Draw(t, "value")} }), 1, 12).Draw(rt, "fields")
		number++
		id := strconv.Itoa(number) + "-0"
		var flat, foreign []string
		hasBody := false
		for _, p := range pairs {
			flat = append(flat, p[0], p[1])
			hasBody = hasBody || p[0] == "body"
			if !slices.Contains(own, p[0]) {
				foreign = append(foreign, p[0], p[1])
			}
		}
		r.buryFields(id, flat...)
		before := r.len(r.keys.Retry)
		for d, err := range r.client.DeadLetters(t.Context(), "q", "g", xstreamq.DeadFilter{JSON: map[string]string{"a": ""}, OlderThan: 1}) {
			if err != nil {
				rt.Fatal(d.ID, err)
			}
		}
		o := xstreamq.RedriveAllOptions{DryRun: true, Filter: xstreamq.DeadFilter{Match: func(d *xstreamq.DeadMessage) bool { return d.ID == id }}}
		promised, err := r.client.RedriveAll(t.Context(), "q", "g", o)
		if err != nil || r.len(r.keys.Retry) != before {
			rt.Fatal(err)
		}
		got, err := r.client.Redrive(t.Context(), "q", "g", []string{id}, xstreamq.RedriveOptions{})
		if diff := cmp.Diff(promised, got); diff != "" || err != nil {
			rt.Fatalf("%v, promised and done:\n%s", err, diff)
		}
		if (len(got.Redriven) == 1) != hasBody {
			rt.Fatalf("redriven: %v", got)
		}
		if hasBody {
			arrived := r.raw(r.keys.Retry)[0]
			if !slices.Equal(arrived[:len(foreign)], foreign) || arrived[len(foreign)] != "oid" || len(arrived) > len(foreign)+4 {
				rt.Fatalf("%q became %q", flat, arrived)
			}
			r.ask("DEL", r.keys.Retry)
		}
	})
}

var deadBytes = rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) })
