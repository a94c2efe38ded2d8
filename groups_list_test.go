package xstreamq_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// withoutLag: servers do not agree on it.
var withoutLag = cmpopts.IgnoreFields(xstreamq.Group{}, "Lag")

// A group that was listed is counted as one that is asked for by its name; one that has gone since is ErrNoGroup.
func TestDepthOfListedGroup(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere + "\nHSET @registry q/lost {}")
	groups, err := r.client.Groups(r.ctx, "q")
	if err != nil || len(groups) < 2 {
		t.Fatal(groups, err)
	}
	for _, g := range groups {
		want, err := r.client.Depth(r.ctx, "q", g.Name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.client.DepthOf(r.ctx, "q", g)
		got.Oldest, want.Oldest = got.Oldest.Round(time.Hour), want.Oldest.Round(time.Hour)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v, -Depth +DepthOf:\n%s", g, err, diff)
		}
	}
	// It has something pending, so that its list is asked for.
	r.run("XGROUP CREATE @queue short 0\nXREADGROUP GROUP short c COUNT 1 STREAMS @queue >")
	groups, err = r.client.StreamGroups(r.ctx, "q")
	at := slices.IndexFunc(groups, func(g xstreamq.Group) bool { return g.Name == "short" })
	if err != nil || at < 0 || groups[at].Pending != 1 {
		t.Fatal(groups, err)
	}
	r.run("XGROUP DESTROY @queue short")
	if d, err := r.client.DepthOf(r.ctx, "q", groups[at]); !errors.Is(err, xstreamq.ErrNoGroup) {
		t.Errorf("%+v, %v", d, err)
	}
}

// Groups are those of the stream and those of the registry together.
func TestGroups(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere + `
		HSET @registry q/other {} qq/g {} q/a/b {} q {} other/g {}
		XGROUP CREATE @queue fresh 0
		XGROUP CREATE @queue back 3-0
		XREADGROUP GROUP back c COUNT 1 STREAMS @queue >
		XGROUP SETID @queue back 1-0`)
	got, err := r.client.Groups(r.ctx, "q")
	want := []xstreamq.Group{
		{Name: "a/b", Registered: true}, // no name that can be, and yet it keeps the queue from being trimmed
		{Name: "back", Present: true, Pending: 1, Consumers: 1, Delivered: "1-0", Unfinished: "1-0"}, // what it holds is higher
		{Name: "fresh", Present: true, Delivered: "0-0", Unfinished: "0-0"},
		{Name: "g", Registered: true, Present: true, Pending: 2, Consumers: 2, Delivered: "3-0", Unfinished: "2-0"},
		{Name: "gone", Registered: true},
		{Name: "other", Registered: true, Present: true, Delivered: "3-0", Unfinished: "3-0"},
	}
	if diff := cmp.Diff(want, got, withoutLag); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// A queue without a stream has the groups of the registry, and one without any group has none.
func TestGroupsOfAQueueWithout(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run("HSET @registry q/g {}")
	got, err := r.client.Groups(r.ctx, "q")
	if diff := cmp.Diff([]xstreamq.Group{{Name: "g", Registered: true}}, got, withoutLag); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	r.run("DEL @registry\nXADD @queue 1-0 body a")
	if got, err := r.client.Groups(r.ctx, "q"); len(got) != 0 || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// The registry says of a group what its subscription was given.
func TestRegisteredAsSubscribed(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	q := stopQueue(t, r.client, "orders")
	seconds := 30 * time.Second
	cases := map[string]struct {
		o    xstreamq.SubscribeOptions
		want xstreamq.Registration
	}{
		"defaults": {xstreamq.SubscribeOptions{}, xstreamq.Registration{VisibilityTimeout: seconds, MaxRetries: 5, MaxLostLeases: 5}},
		"strict": {
			xstreamq.SubscribeOptions{MaxRetries: xstreamq.NoRetries, MaxLostLeases: xstreamq.RetryForever, VisibilityTimeout: time.Minute, Dedupe: time.Hour},
			xstreamq.Registration{MaxRetries: xstreamq.NoRetries, MaxLostLeases: xstreamq.RetryForever, VisibilityTimeout: time.Minute, Dedupe: time.Hour},
		},
		"without": {xstreamq.SubscribeOptions{NoVisibilityTimeout: true}, xstreamq.Registration{MaxRetries: 5, MaxLostLeases: 5}},
	}
	var want []xstreamq.Registration
	for _, group := range slices.Sorted(maps.Keys(cases)) {
		if _, err := q.Subscribe(group, stopNothing, cases[group].o); err != nil {
			t.Fatal(err)
		}
		row := cases[group].want
		row.Queue, row.Group = "orders", group
		want = append(want, row)
	}
	begun := time.Now().Add(-time.Second) // of the server's clock we see whole milliseconds
	stopStart(t, r.client)
	got, err := r.client.Registered(r.ctx)
	for i := range got {
		if got[i].FirstSeen.Before(begun) || got[i].LastSeen.Before(got[i].FirstSeen) {
			t.Errorf("%+v", got[i])
		}
		got[i].FirstSeen, got[i].LastSeen = time.Time{}, time.Time{}
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// Rows are listed by queue and group; those that cannot be of a group are not, and of what cannot be read there are the names.
func TestRegistered(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	if got, err := r.client.Registered(r.ctx); len(got) != 0 || err != nil {
		t.Errorf("without a registry: %+v, %v", got, err)
	}
	r.run(`HSET @registry b/g "{\"max_retries\":0,\"max_lost_leases\":7,\"visibility_ms\":0,\"dedupe_ms\":60000}" b/a "not JSON" a.b/z {} a/z "[1]" a/x "{\"max_retries\":\"many\"}"
		HSET @registry "a" {} "a b/c" {} "a/b/c" {} "/g" {} "q/" {} "" {} "q/\x1b[2J" {}
		HSET @registry c/c "{\"visibility_ms\":9223372036854775807,\"max_retries\":-7,\"first_seen\":-1,\"last_seen\":1700000000000,\"more\":1}"
		HSET @registry q/g "{\"max_retries\":5,\"max_lost_leases\":-1,\"visibility_ms\":30000,\"first_seen\":1700000000000}"`)
	want := []xstreamq.Registration{
		{Queue: "a", Group: "x"},
		{Queue: "a", Group: "z"},
		{Queue: "a.b", Group: "z"},
		{Queue: "b", Group: "a"},
		{Queue: "b", Group: "g", MaxRetries: xstreamq.NoRetries, MaxLostLeases: 7, Dedupe: time.Minute},
		{Queue: "c", Group: "c", MaxRetries: xstreamq.RetryForever, VisibilityTimeout: 9223372036854 * time.Millisecond, LastSeen: time.UnixMilli(1700000000000)},
		{
			Queue: "q", Group: "g", MaxRetries: 5, MaxLostLeases: xstreamq.RetryForever, VisibilityTimeout: 30 * time.Second,
			FirstSeen: time.UnixMilli(1700000000000),
		},
	}
	got, err := r.client.Registered(r.ctx)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

// A registry of many pages is listed whole, each row once.
func TestRegisteredPages(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	const rows = 3000
	r.fill("registry", "registry", rows)
	got, err := r.client.Registered(r.ctx)
	seen := map[string]bool{}
	for _, row := range got {
		seen[row.Queue] = true
	}
	if len(got) != rows || len(seen) != rows || !seen[fmt.Sprint("q", rows)] || err != nil {
		t.Errorf("%d rows, %d queues, %v", len(got), len(seen), err)
	}
}

// StreamGroups shows what is on the stream alone, and reads no registry.
func TestStreamGroups(t *testing.T) {
	t.Parallel()
	client := redistest.Client(t)
	prefix := redistest.Prefix(t)
	c, err := xstreamq.New(client, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	if groups, err := c.StreamGroups(t.Context(), "q"); err != nil || len(groups) != 0 {
		t.Errorf("of no queue: %v, %v", groups, err)
	}
	for _, command := range [][]string{
		{"XGROUP", "CREATE", prefix + "{q}", "b", "0", "MKSTREAM"}, {"XGROUP", "CREATE", prefix + "{q}", "a", "0"},
		{"HSET", prefix + "xstreamq:registry", "q/gone", "{}", "q/a", "{}"},
	} {
		if err := client.Do(t.Context(), client.B().Arbitrary(command...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := c.StreamGroups(t.Context(), "q")
	if err != nil || len(groups) != 2 || groups[0].Name != "a" || groups[1].Name != "b" || !groups[0].Present || groups[0].Registered {
		t.Errorf("%+v, %v", groups, err)
	}
	if _, err := c.StreamGroups(t.Context(), "{}"); !errors.Is(err, xstreamq.ErrInvalidName) {
		t.Error(err)
	}
}
