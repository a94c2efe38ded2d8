package xstreamq_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xstreamq/xstreamq"
)

// What Peek shows of each place: ids, bodies, headers, counters, times; reserved fields are believed where only the engine writes.
func TestPeek(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere)
	ms := time.UnixMilli
	type message = xstreamq.StoredMessage
	body := func(s string) []byte { return []byte(s) }
	undelivered := []message{
		{ID: "4-0", OriginalID: "4-0", Body: body("d"), Header: map[string]string{"k": "v"}, PublishedAt: ms(4)},
		{ID: "5-0", OriginalID: "5-0", PublishedAt: ms(5)},
		{ID: "6-0", OriginalID: "d9-ff", Body: body("f"), PublishedAt: ms(7)},
	}
	all := append([]message{
		{ID: "1-0", OriginalID: "1-0", Body: body("a"), Header: map[string]string{"tenant": "acme"}, PublishedAt: ms(1)},
		{ID: "2-0", OriginalID: "2-0", Body: body("b"), PublishedAt: ms(2)},
		{ID: "3-0", OriginalID: "3-0", Body: body("c"), PublishedAt: ms(3)},
	}, undelivered...)
	for _, c := range []struct {
		name, group string
		o           xstreamq.PeekOptions
		want        []message
	}{
		{"the next of the queue", "g", xstreamq.PeekOptions{}, undelivered},
		{"the next one", "g", xstreamq.PeekOptions{Count: 1}, undelivered[:1]},
		{"as many as there are", "g", xstreamq.PeekOptions{Count: 3}, undelivered},
		{"all of the queue", "", xstreamq.PeekOptions{}, all},
		{"as a group that is only registered would get it", "gone", xstreamq.PeekOptions{}, all},
		{"to retry", "g", xstreamq.PeekOptions{From: xstreamq.InRetry}, []message{
			{ID: "11-0", OriginalID: "10-5", Body: body("r1"), PublishedAt: ms(10), Failures: 2, LostLeases: 1, Error: "boom"},
			{ID: "12-0", OriginalID: "d10-ff", Body: body("r2"), PublishedAt: ms(5), Failures: 1},
			{ID: "13-0", OriginalID: "10-7", Body: body("r3"), PublishedAt: ms(10)},
		}},
		{"in backoff", "g", xstreamq.PeekOptions{From: xstreamq.InBackoff}, []message{
			{ID: "10-1", OriginalID: "10-1", Body: body("x"), PublishedAt: ms(10), Due: ms(21000), Failures: 3},
			{ID: "10-2", OriginalID: "10-2", Body: body("y"), PublishedAt: ms(10), Due: ms(22000)},
			{ID: "odd", Due: ms(23000)},
			{ID: "10-4", Due: ms(24000)},
		}},
		{"delayed", "g", xstreamq.PeekOptions{From: xstreamq.InDelayed}, []message{
			{ID: "d31-ff", OriginalID: "d31-ff", Body: body("x"), PublishedAt: ms(30), Due: ms(31000)},
			{ID: "7-7", Body: body("y"), Due: ms(32000)},
			{ID: "x", Due: ms(33000)},
			{ID: "nothing", Due: ms(34000)},
			{ID: "d5-ff"},
		}},
		{"dead", "g", xstreamq.PeekOptions{From: xstreamq.InDLQ, Count: 2}, []message{
			{
				ID: "41-0", OriginalID: "10-8", Body: body("z"), Header: map[string]string{"tenant": "acme"}, PublishedAt: ms(10), Failures: 4, Error: "broken",
				Reason: xstreamq.Failed, At: ms(40000),
			},
			{ID: "42-0", OriginalID: "10-9", PublishedAt: ms(10), Reason: xstreamq.NoBody, At: ms(40001)},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := r.client.Peek(r.ctx, "q", c.group, c.o)
			if c.o.From == "" {
				c.o.From = xstreamq.InQueue
			}
			for i := range c.want {
				c.want[i].Place = c.o.From
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// Ten is the default; a group that was given the last entry that can be has nothing to come.
func TestPeekCounts(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectTimes(12, "XADD @queue %d-0 body a") + "XGROUP CREATE @queue g 0\nXGROUP CREATE @queue last 18446744073709551615-18446744073709551615\n" +
		inspectTimes(12, `ZADD @delayed %d "%d-0\x004:body1:a"`))
	for _, c := range []struct {
		group string
		o     xstreamq.PeekOptions
		want  int
	}{
		{"g", xstreamq.PeekOptions{}, 10},
		{"g", xstreamq.PeekOptions{Count: 12}, 12},
		{"g", xstreamq.PeekOptions{Count: 1 << 40}, 12},
		{"g", xstreamq.PeekOptions{From: xstreamq.InDelayed}, 10},
		{"", xstreamq.PeekOptions{From: xstreamq.InDelayed, Count: 11}, 11},
		{"", xstreamq.PeekOptions{From: xstreamq.InDelayed, Count: 1 << 40}, 12},
		{"last", xstreamq.PeekOptions{}, 0},
	} {
		if got, err := r.client.Peek(r.ctx, "q", c.group, c.o); len(got) != c.want || err != nil {
			t.Errorf("group %q, %+v: %d, %v", c.group, c.o, len(got), err)
		}
	}
	for _, o := range []xstreamq.PeekOptions{{Count: -1}, {From: "attic"}} {
		if _, err := r.client.Peek(r.ctx, "q", "g", o); !errors.Is(err, xstreamq.ErrInvalidConfig) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Large bodies come in pages, whole and in order, and nothing was consumed when all were seen.
func TestPeekPages(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	sizes := []int{0, 300 << 10, 1, 1 << 20, 300 << 10, 10, 700 << 10, 20, 30, 40}
	var load strings.Builder
	for i, size := range sizes {
		text := strings.Repeat(string(rune('a'+i)), size)
		fmt.Fprintf(&load, "XADD @queue %d-0 body \"%s\"\n", i+1, text)
		fmt.Fprintf(&load, "ZADD @delayed %d \"d%d-ff\\x004:body%d:%s\"\n", i+1, i+1, size, text)
	}
	r.run(load.String() + "XGROUP CREATE @queue g 0")
	for _, place := range []xstreamq.Place{xstreamq.InQueue, xstreamq.InDelayed} {
		found, err := r.client.Peek(r.ctx, "q", "g", xstreamq.PeekOptions{From: place})
		if err != nil || len(found) != len(sizes) {
			t.Fatalf("%s: %d, %v", place, len(found), err)
		}
		for i, m := range found {
			if want := strings.Repeat(string(rune('a'+i)), sizes[i]); string(m.Body) != want || m.Body == nil {
				t.Errorf("%s: body %d has %d bytes, want %d", place, i, len(m.Body), sizes[i])
			}
		}
	}
	if d := r.depth(); d.Backlog != int64(len(sizes)) || d.Pending != 0 || d.Delayed != int64(len(sizes)) {
		t.Errorf("%+v", d)
	}
}

// The id of a member that cannot be read is cut, and its bytes are kept.
func TestPeekAtForeignMembers(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(`ZADD @delayed 1 "` + strings.Repeat("x", 5000) + `" 2 "\xff\x1b[2J" 3 "" 4 "\x00" 5 "a\x00b\x00c" -1 past -inf long -2 "d1-ff\x00"`)
	found, err := r.client.Peek(r.ctx, "q", "", xstreamq.PeekOptions{From: xstreamq.InDelayed})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range found {
		ids = append(ids, m.ID)
		if m.Body != nil || (m.OriginalID != "") != (m.ID == "d1-ff") {
			t.Errorf("%+v", m)
		}
		if negative := m.ID == "past" || m.ID == "long" || m.ID == "d1-ff"; m.Due.IsZero() != negative {
			t.Errorf("%+v", m)
		}
	}
	want := []string{"long", "d1-ff", "past", strings.Repeat("x", 200), "\xff\x1b[2J", "", "", "a"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
