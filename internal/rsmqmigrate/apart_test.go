package rsmqmigrate

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

// A run that ends after any of its steps leaves no message that consumers of RSMQ could get although it was copied, and the next run
// finishes it: nothing is lost, nothing is there twice, order and delays are kept.
func TestApartEndsMidway(t *testing.T) {
	t.Parallel()
	steps := []string{"fetch", "copy", "forget"}
	for ends, name := range steps {
		t.Run("after "+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, redistest.Client(t), true)
			r.many(20)
			late := r.send(time.Hour+7*time.Millisecond, "late 1", "late 2")
			want := r.expected(late, "")
			h, _, err := r.m.fetch(t.Context(), 0, false)
			if err != nil || len(h.ids()) != 22 {
				t.Fatal(len(h.ids()), err)
			}
			if ends >= 1 {
				if err := r.m.write(t.Context(), h); err != nil {
					t.Fatal(err)
				}
			}
			if ends >= 2 {
				if err := runForget(t.Context(), r.redis, r.m.keys, forgetArgs{IDs: h.ids()}).Error(); err != nil {
					t.Fatal(err)
				}
			}
			if _, ok, err := r.from.ReceiveMessage(t.Context(), r.q.Name, rsmq.ReceiveOptions{}); ok || err != nil {
				t.Errorf("a consumer of RSMQ gets a message that is being moved: %v", err)
			}
			// Messages that came meanwhile are younger.
			for _, id := range r.send(0, "young") {
				want = append(want[:20:20], append([]moved{{RSMQ: id, Body: "young", RC: "0", Sent: sentOf(id)}}, want[20:]...)...)
			}
			if c, err := Survey(t.Context(), r.redis, r.q); err != nil || c.InFlight != 0 {
				t.Errorf("survey: %+v, %v", c, err)
			}
			c := r.move()
			if moved := []int64{23, 23, 1}[ends]; c.Moved() != moved {
				t.Errorf("%+v", c)
			}
			if diff := cmp.Diff(want, r.arrived()); diff != "" {
				t.Errorf("arrived (-want +got):\n%s", diff)
			}
			if messages, fields := r.left(); messages+fields != 0 {
				t.Errorf("%d messages are left, %d fields", messages, fields)
			}
		})
	}
}

// Messages that could not be copied are as they were.
func TestApartGivesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Client(t), true)
	r.many(5)
	r.send(time.Hour, "late")
	deleted := r.send(0, "deleted meanwhile")[0]
	before := r.dump()
	h, _, err := r.m.fetch(t.Context(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	h.now -= (copyWithin + time.Second).Milliseconds()
	if err := r.m.write(t.Context(), h); !errors.Is(err, errStale) {
		t.Error(err)
	}
	if r.dump() != before {
		t.Error("the queues changed")
	}
	if h, _, err = r.m.fetch(t.Context(), 0, false); err != nil {
		t.Fatal(err)
	}
	if ok, err := r.from.DeleteMessage(t.Context(), r.q.Name, deleted); !ok || err != nil {
		t.Error(ok, err)
	}
	if err := r.m.giveBack(t.Context(), h); err != nil {
		t.Error(err)
	}
	if messages, _ := r.left(); messages != 6 {
		t.Errorf("%d messages are left", messages)
	}
}

// What is noted of copies is forgotten: at once when nothing is under way, else when it is old.
func TestApartForgetsNotes(t *testing.T) {
	t.Parallel()
	r := newRig(t, redistest.Client(t), true)
	ids := r.many(3)
	h, _, err := r.m.fetch(t.Context(), 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.m.write(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	ttl := func() time.Duration {
		ms, err := r.do("PTTL", r.m.keys.Migrated).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ms) * time.Millisecond
	}
	if d := ttl(); d < keepUnfinished-time.Minute {
		t.Errorf("unfinished copies are noted for %s", d)
	}
	r.move()
	if d := ttl(); d <= 0 || d > keepNote {
		t.Errorf("finished copies are noted for %s", d)
	}
	r.do("ZADD", r.m.keys.Migrated, "1", "old")
	more := r.many(1)
	r.move()
	if n, err := r.do("ZCARD", r.m.keys.Migrated).AsInt64(); err != nil || n != 4 {
		t.Errorf("%d notes: %v", n, err)
	}
	r.once(append(ids, more...))
}

// On a cluster messages move within a slot and from one to another, also between nodes.
func TestMoveOnCluster(t *testing.T) {
	t.Parallel()
	rc := startCluster(t)
	if _, err := Survey(t.Context(), rc, Queues{Namespace: "rsmq", Name: "q", To: "q"}); !errors.Is(err, ErrNoTag) {
		t.Errorf("a namespace without a tag: %v", err)
	}
	if _, err := Move(t.Context(), rc, Queues{Namespace: "rsmq", Name: "q", To: "q"}, nil); !errors.Is(err, ErrNoTag) {
		t.Errorf("a namespace without a tag: %v", err)
	}
	for name, q := range map[string]Queues{
		"one slot":  {Namespace: "x{a}", Name: "q", Prefix: "p:", To: "a"},
		"two slots": {Namespace: "{a}", Name: "p", To: "b"}, // on different nodes
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rigOf(t, rc, q, false)
			if r.m.apart != (name == "two slots") {
				t.Errorf("apart: %v", r.m.apart)
			}
			r.many(500)
			late := r.send(time.Hour, "late")
			want := r.expected(late, "")
			c, err := Move(t.Context(), rc, q, nil)
			if err != nil || c.Visible != 500 || c.Delayed != 1 {
				t.Errorf("%+v, %v", c, err)
			}
			if diff := cmp.Diff(want, r.arrived()); diff != "" {
				t.Errorf("arrived (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"a": "a", "{a}": "a", "x{a}y{b}": "a", "{}": "{}", "{}{a}": "{}{a}", "x{a": "x{a", "{{a}": "{a", "}{a}": "a",
	} {
		if got := tag(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

// startCluster returns a client of a Redis Cluster of two masters, each with half of the slots.
func startCluster(t *testing.T) rueidis.Client {
	t.Helper()
	ctx := context.Background()
	var nodes []rueidis.Client
	var addrs []string
	for _, first := range []int{0, 8192} {
		server := redistest.Start(t, redistest.Options{Args: []string{"--cluster-enabled", "yes"}})
		node, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(node.Close)
		if err := node.Do(ctx, node.B().Arbitrary(redistest.AddSlots(first, first+8191)...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		nodes, addrs = append(nodes, node), append(addrs, server.Addr())
	}
	host, port, err := net.SplitHostPort(addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := nodes[0].Do(ctx, nodes[0].B().Arbitrary("CLUSTER", "MEET", host, port).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 30*time.Second, "the nodes to agree", func() bool {
		return !slices.ContainsFunc(nodes, func(node rueidis.Client) bool {
			info, _ := node.Do(ctx, node.B().Arbitrary("CLUSTER", "INFO").Build()).ToString()
			return !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_size:2")
		})
	})
	rc, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true, AlwaysPipelining: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rc.Close)
	return rc
}
