package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// inspectEverywhere puts messages into every place: 3 in the backlog, 2 pending on the queue and 1 on the retry stream, 2 to retry, 4 in backoff,
// 5 delayed, 6 dead, and one that is finished.
const inspectEverywhere = `
	XADD @queue 1-0 body a h:tenant acme
	XADD @queue 2-0 body b
	XADD @queue 3-0 body c
	XADD @queue 4-0 body d h:k v h:k w
	XADD @queue 5-0 note nobody
	XADD @queue 6-0 body f oid d9-ff pub 7 rc 9
	XGROUP CREATE @queue g 0
	XREADGROUP GROUP g a~30000 COUNT 2 STREAMS @queue >
	XREADGROUP GROUP g b~100 COUNT 1 STREAMS @queue >
	XACK @queue g 1-0
	XADD @retry 11-0 body r1 oid 10-5 rc 2 lc 1 err boom
	XADD @retry 12-0 body r2 oid d10-ff pub 5 rc 1
	XADD @retry 13-0 body r3 oid 10-7
	XGROUP CREATE @retry g-retry 0
	XREADGROUP GROUP g-retry a~30000 COUNT 1 STREAMS @retry >
	ZADD @backoff 21000 "10-1\x004:body1:x3:oid4:10-12:rc1:3" 22000 "10-2\x004:body1:y3:oid4:10-2" 23000 "odd" 24000 "10-4\x004:body"
	ZADD @delayed 31000 "d31-ff\x004:body1:x3:oid6:d31-ff3:pub2:30" 32000 "7-7\x004:body1:y" 33000 "x\x00" 34000 "nothing" 1e300 "d5-ff\x004:bo"
	XADD @dlq 41-0 body z oid 10-8 rc 4 err broken reason failed at 40000 from 40-0 by a~30000 h:tenant acme
	XADD @dlq 42-0 oid 10-9 reason no-body at 40001 from 40-1 by a~30000
	XADD @dlq 43-0 body z
	XADD @dlq 44-0 body z
	XADD @dlq 45-0 body z
	XADD @dlq 46-0 body z
	XGROUP CREATE @queue other 3-0
	HSET @registry q/g "{\"queue\":\"q\",\"group\":\"g\",\"visibility_ms\":30000,\"max_retries\":5,\"max_lost_leases\":-1,\"dedupe_ms\":0,\"first_seen\":1700000000000,\"last_seen\":1700000001000}"
	HSET @registry q/gone {}`

// Every message is counted once, where it is.
func TestDepth(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere)
	want := xstreamq.Depth{Queue: "q", Group: "g", Length: 6, Backlog: 3, Pending: 3, Retry: 2, Backoff: 4, Delayed: 5, Dead: 6}
	if diff := cmp.Diff(want, r.depth()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for group, want := range map[string]xstreamq.Depth{
		"":      {Queue: "q", Length: 6, Backlog: 6, Delayed: 5},
		"other": {Queue: "q", Group: "other", Length: 6, Backlog: 3, Delayed: 5},
		"gone":  {Queue: "q", Group: "gone", Length: 6, Backlog: 6, Delayed: 5}, // registered, not on the stream
	} {
		got, err := r.client.Depth(r.ctx, "q", group)
		got.Oldest = 0
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("group %q: %v, -want +got:\n%s", group, err, diff)
		}
	}
}

// A group is empty when nothing of it waits or runs: what is delayed or dead does not count.
func TestDepthEmpty(t *testing.T) {
	t.Parallel()
	const drained = "XADD @queue 1-0 body a\nXGROUP CREATE @queue g 0\nXREADGROUP GROUP g c NOACK STREAMS @queue >\n"
	for name, c := range map[string]struct {
		more  string
		empty bool
	}{
		"drained":  {"", true},
		"delayed":  {"ZADD @delayed 1 x", true},
		"dead":     {"XADD @dlq 1-0 body a", true},
		"backlog":  {"XADD @queue 2-0 body a", false},
		"pending":  {"XADD @queue 2-0 body a\nXREADGROUP GROUP g c STREAMS @queue >", false},
		"to retry": {"XADD @retry 2-0 body a", false},
		"leased for a retry": {"XADD @retry 2-0 body a\nXGROUP CREATE @retry g-retry 0\n" +
			"XREADGROUP GROUP g-retry c STREAMS @retry >", false},
		"in backoff": {"ZADD @backoff 1 x", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newInspectRig(t)
			r.run(drained + c.more)
			if d := r.depth(); d.Empty() != c.empty {
				t.Errorf("%+v", d)
			}
		})
	}
	if (xstreamq.Depth{Backlog: xstreamq.UnknownLag}).Empty() {
		t.Error("an unknown backlog passes for none")
	}
}

// The age of the oldest message is that of its publish, or for a delayed one since it was due, wherever it lies now.
func TestDepthOldest(t *testing.T) {
	t.Parallel()
	const hours = 3600 * 1000
	now := time.Now().UnixMilli() // of the server too: it is on this machine
	for name, c := range map[string]struct {
		commands string
		hours    int64
	}{
		"none":       {"XGROUP CREATE @queue g 0 MKSTREAM", 0},
		"backlog":    {"XADD @queue 1H-0 body a\nXADD @queue 0H-1 body a\nXGROUP CREATE @queue g 0", 1},
		"pending":    {"XADD @queue 2H-0 body a\nXADD @queue 1H-0 body a\nXGROUP CREATE @queue g 0\nXREADGROUP GROUP g c COUNT 1 STREAMS @queue >", 2},
		"delivered":  {"XADD @queue 2H-0 body a\nXADD @queue 1H-0 body a\nXGROUP CREATE @queue g 2H-0", 1},
		"to retry":   {"XADD @queue 1H-0 body a\nXGROUP CREATE @queue g 0\nXADD @retry 0H-0 body a oid 3H-7", 3},
		"was due":    {"XGROUP CREATE @queue g 0 MKSTREAM\nXADD @retry 0H-0 body a oid d2H-ff pub 5H", 2},
		"no time":    {"XGROUP CREATE @queue g 0 MKSTREAM\nXADD @retry 0H-0 body a oid stranger", 0},
		"the future": {"XADD @queue 99999999999999-0 body a\nXGROUP CREATE @queue g 0", 0},
		"beyond all": {"XADD @queue 18446744073709551615-0 body a\nXGROUP CREATE @queue g 0", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newInspectRig(t)
			commands := c.commands
			for h := range int64(6) {
				commands = strings.ReplaceAll(commands, fmt.Sprintf("%dH", h), fmt.Sprint(now-h*hours))
			}
			r.run(commands)
			d, err := r.client.Depth(r.ctx, "q", "g")
			want := time.Duration(c.hours) * time.Hour
			if err != nil || d.Oldest < want || d.Oldest > want+10*time.Minute || want == 0 && d.Oldest > 0 {
				t.Errorf("%v, %v; want %v", d.Oldest, err, want)
			}
		})
	}
}

// inspection is one of the read-only operations, on a queue and group.
type inspection struct {
	name string
	ask  func(ctx context.Context, c *xstreamq.Client, queue, group string) (any, error)
}

// inspections are all of them; every way in which Peek and Depth can be asked is one.
func inspections() []inspection {
	all := []inspection{
		{"Depth", func(ctx context.Context, c *xstreamq.Client, queue, group string) (any, error) {
			d, err := c.Depth(ctx, queue, group)
			d.Oldest = 0
			return d, err
		}},
		{"Lag", func(ctx context.Context, c *xstreamq.Client, queue, group string) (any, error) {
			return c.Lag(ctx, queue, group)
		}},
		{"Consumers", func(ctx context.Context, c *xstreamq.Client, queue, group string) (any, error) {
			found, err := c.Consumers(ctx, queue, group)
			for i := range found {
				found[i].Idle = 0
			}
			return found, err
		}},
		{"Pending", func(ctx context.Context, c *xstreamq.Client, queue, group string) (any, error) {
			var found []xstreamq.PendingMessage
			for m, err := range c.Pending(ctx, queue, group) {
				if err != nil {
					return nil, err
				}
				m.Idle = 0
				found = append(found, m)
			}
			return found, nil
		}},
	}
	for _, place := range inspectPlaces {
		all = append(all, inspection{"Peek " + string(place), func(ctx context.Context, c *xstreamq.Client, queue, group string) (any, error) {
			return c.Peek(ctx, queue, group, xstreamq.PeekOptions{From: place})
		}})
	}
	return all
}

var inspectPlaces = []xstreamq.Place{xstreamq.InQueue, xstreamq.InRetry, xstreamq.InDelayed, xstreamq.InBackoff, xstreamq.InDLQ}

// queueInspections are those that go without a group.
func queueInspections() []inspection {
	return []inspection{
		{"Depth of the queue", func(ctx context.Context, c *xstreamq.Client, queue, _ string) (any, error) {
			return c.Depth(ctx, queue, "")
		}},
		{"Groups", func(ctx context.Context, c *xstreamq.Client, queue, _ string) (any, error) {
			return c.Groups(ctx, queue)
		}},
		{"Peek at the queue", func(ctx context.Context, c *xstreamq.Client, queue, _ string) (any, error) {
			return c.Peek(ctx, queue, "", xstreamq.PeekOptions{})
		}},
		{"Peek at what is delayed", func(ctx context.Context, c *xstreamq.Client, queue, _ string) (any, error) {
			return c.Peek(ctx, queue, "", xstreamq.PeekOptions{From: xstreamq.InDelayed})
		}},
	}
}

// A queue or group that is not there is no empty one; one that is only in the registry, or has only a key of its own, is there.
func TestInspectionOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, before string
		queue, group error
	}{
		{"nothing", "", xstreamq.ErrNoQueue, xstreamq.ErrNoQueue},
		{"another group", "XGROUP CREATE @queue h 0 MKSTREAM", nil, xstreamq.ErrNoGroup},
		{"another group in the registry", "HSET @registry q/h {} q2/g {}", nil, xstreamq.ErrNoQueue},
		{"a queue and no group", "XADD @queue 1-0 body a", nil, xstreamq.ErrNoGroup},
		{"only what is delayed", "ZADD @delayed 1 x", nil, xstreamq.ErrNoGroup},
		{"a group, nothing in it", "XGROUP CREATE @queue g 0 MKSTREAM", nil, nil},
		{"in the registry", "HSET @registry q/g {}", nil, nil},
		{"a retry stream", "XADD @retry 1-0 body a", xstreamq.ErrNoQueue, nil},
		{"a dead-letter stream", "XADD @dlq 1-0 body a", xstreamq.ErrNoQueue, nil},
		{"a backoff", "ZADD @backoff 1 x", xstreamq.ErrNoQueue, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newInspectRig(t)
			r.run(c.before)
			for _, i := range inspections() {
				_, err := i.ask(r.ctx, r.client, "q", "g")
				if i.name == "Peek delayed" && c.name == "only what is delayed" {
					continue // it found something, and is no group's own
				}
				if !errors.Is(err, c.group) {
					t.Errorf("%s: %v, want %v", i.name, err, c.group)
				}
			}
			for _, i := range queueInspections() {
				if _, err := i.ask(r.ctx, r.client, "q", ""); !errors.Is(err, c.queue) {
					t.Errorf("%s: %v, want %v", i.name, err, c.queue)
				}
			}
		})
	}
}

// Names that may not go into a key are refused before anything is asked.
func TestInspectionOfBadNames(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	for _, i := range inspections() {
		for _, names := range [][2]string{{"", "g"}, {"q{", "g"}, {"q", "a b"}, {"q", strings.Repeat("g", 1000)}} {
			if _, err := i.ask(r.ctx, r.client, names[0], names[1]); !errors.Is(err, xstreamq.ErrInvalidName) {
				t.Errorf("%s of %.20q: %v", i.name, names, err)
			}
		}
		_, err := i.ask(r.ctx, r.client, "q", "")
		if forQueue := i.name == "Depth" || i.name == "Peek queue" || i.name == "Peek delayed"; errors.Is(err, xstreamq.ErrInvalidName) == forQueue {
			t.Errorf("%s without a group: %v", i.name, err)
		}
	}
	for _, i := range queueInspections() {
		if _, err := i.ask(r.ctx, r.client, "q}", ""); !errors.Is(err, xstreamq.ErrInvalidName) {
			t.Errorf("%s: %v", i.name, err)
		}
	}
}

// A key of the wrong type is named by every operation that needs it.
func TestInspectionOfWrongTypes(t *testing.T) {
	t.Parallel()
	const all = "Depth Lag Depth of the queue "
	for role, needs := range map[string]string{
		"queue":    all + "Consumers Pending Groups Peek queue Peek at the queue",
		"delayed":  all + "Peek delayed Peek at what is delayed",
		"retry":    all + "Consumers Pending Peek retry",
		"backoff":  all + "Peek backoff",
		"dlq":      all + "Peek dlq",
		"registry": "Groups",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := newInspectRig(t)
			r.run("XGROUP CREATE @queue g 0 MKSTREAM\nDEL @" + role + "\nSET @" + role + " x")
			for _, i := range append(inspections(), queueInspections()...) {
				if i.name == "Depth of the queue" && role != "queue" && role != "delayed" || !strings.Contains(needs, i.name) {
					continue
				}
				_, err := i.ask(r.ctx, r.client, "q", "g")
				var refused *rueidis.RedisError
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), "key "+r.key(role)) || !strings.Contains(err.Error(), `queue "q"`) {
					t.Errorf("%s: %v", i.name, err)
				}
			}
			if _, err := r.client.Registered(r.ctx); (err != nil) != (role == "registry") {
				t.Errorf("Registered: %v", err)
			}
		})
	}
}

// All of it is the same by the older protocol.
func TestInspectionByRESP2(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	r.run(inspectEverywhere)
	option, err := rueidis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	option.AlwaysRESP2, option.DisableCache = true, true
	old, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(old.Close)
	c, err := xstreamq.New(old, xstreamq.Config{KeyPrefix: r.prefix})
	if err != nil {
		t.Fatal(err)
	}
	all := append(inspections(), queueInspections()...)
	all = append(all, inspection{"Registered", func(ctx context.Context, c *xstreamq.Client, _, _ string) (any, error) { return c.Registered(ctx) }})
	for _, i := range all {
		want, err := i.ask(r.ctx, r.client, "q", "g")
		if err != nil {
			t.Errorf("%s: %v", i.name, err)
		}
		got, err := i.ask(r.ctx, c, "q", "g")
		if diff := cmp.Diff(zeroOldest(want), zeroOldest(got)); diff != "" || err != nil {
			t.Errorf("%s: %v, -RESP3 +RESP2:\n%s", i.name, err, diff)
		}
	}
}

func zeroOldest(v any) any {
	if d, ok := v.(xstreamq.Depth); ok {
		d.Oldest = 0
		return d
	}
	return v
}
