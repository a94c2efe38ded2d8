package xstreamq

import (
	"context"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// actions are all that happens to a queue, by workers that live, die and lose replies, by operators and by strangers.
func (m *smMachine) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"publish": m.publish, "foreign": m.foreign, "cancel": m.cancel,
		"read": m.read, "read more": m.read, "read on": m.read, "ack": m.ack,
		"fail": m.fail, "fail more": m.fail, "fail on": m.fail, "crash": m.crash, "lose lease": m.loseLease, "lose more": m.loseLease, "lose on": m.loseLease,
		"steal": m.steal, "release": m.release, "extend": m.extend, "reclaim": m.reclaim, "reclaim more": m.reclaim,
		"promote": m.promote, "promote more": m.promote, "make due": m.makeDue,
		"redrive": m.redrive, "purge": m.purge, "compact": m.compact, "trim": m.trim, "lose group": m.loseGroup, "reap": m.reap,
		"depth": m.depth,
		"":      m.check,
	}
}

// check is the conservation law: Redis holds what the model says, to the last counter; and, by the ledger, which knows nothing of how
// messages move, none is in two places, and none is nowhere that was not ended.
func (m *smMachine) check(t *rapid.T) {
	found := smLook(m.ctx, t, m.redis, m.keys)
	m.model.adopt(found)
	if diff := cmp.Diff(m.model.lines(), found.lines()); diff != "" {
		t.Fatalf("-model +redis:\n%s", diff)
	}
	where := found.where()
	for i := range m.published {
		n := strconv.Itoa(i + 1)
		places, why := where[n], m.ended[n]
		delete(where, n)
		switch {
		case why == "" && places == 0:
			t.Fatalf("message %s is lost", n)
		case places > 1 && !m.again:
			t.Fatalf("message %s is in %d places", n, places)
		case places > 0 && why != "" && why != "trimmed" && !m.again:
			t.Fatalf("message %s comes again after it was %s", n, why)
		}
	}
	if len(where) > 0 {
		t.Fatalf("what is this: %v", where)
	}
}

// smLegs make a walk longer than other properties need: what is rare comes late in the life of a message.
const smLegs = 8

// The same while Redis is killed and comes back with its append-only file: nothing of what it has acknowledged is different after that.
func TestStateMachineAcrossRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED under -short: walks across restarts of Redis")
	}
	t.Parallel()
	ctx := context.Background()
	server := redistest.Start(t, redistest.Options{AOF: "always"})
	runs, restarts, failed, seen := 0, 0, false, map[string]int{}
	rc := redistest.Dial(t, server.URL())
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > smRestartRuns && !failed {
			return // a restart takes about as long as a whole walk without one
		}
		defer func() { failed = failed || rt.Failed() }() // then it is run again, to find a shorter way
		m := newSMMachine(ctx, rt, rc, smClient(t, rc, ""), "q"+strconv.Itoa(runs), seen)
		for range 3 {
			for range smLegs / 2 {
				rt.Repeat(m.actions())
			}
			server.Kill()
			if err := server.Restart(); err != nil {
				rt.Fatal(err)
			}
			restarts++
			rc = redistest.Dial(t, server.URL()) // one that knows of no connection that was cut
			m.use(rt, rc, smClient(t, rc, ""))
			m.check(rt)
		}
	})
	t.Logf("%d restarts: %v", restarts, seen)
}

// smRestartRuns is how many walks meet restarts.
const smRestartRuns = 8

// P1, P2, P4, P5, of the scripts and the public calls in any order: `go test -run TestStateMachine -rapid.checks=10000
// -rapid.steps=100` walks further.
func TestStateMachine(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rc := redistest.Client(t)
	c := smClient(t, rc, redistest.Prefix(t))
	runs, seen := 0, map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		m := newSMMachine(ctx, rt, rc, c, "q"+strconv.Itoa(runs), seen)
		for range smLegs {
			rt.Repeat(m.actions())
		}
	})
	t.Logf("%d runs: %v", runs, seen)
}

func smClient(t *testing.T, rc rueidis.Client, prefix string) *Client {
	t.Helper()
	c, err := New(rc, Config{KeyPrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
