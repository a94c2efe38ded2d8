package xstreamq

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Ten sweepers find the same lapsed lease at once, and none of them heeds the lock: one of them moves it, and it is charged once.
func TestScriptReclaimCrowd(t *testing.T) {
	t.Parallel()
	const sweepers, rounds = 10, 100
	prefix := redistest.Prefix(t)
	k := keys.ForGroup(prefix, "q", "g")
	clients := make([]scriptEnv, sweepers)
	for i := range clients {
		clients[i] = scriptEnv{ctx: t.Context(), redis: redistest.Client(t), keys: k, now: time.Now().UnixMilli()}
	}
	v := newView(t, clients[0].redis, prefix, "q", "g")
	v.do("XGROUP CREATE @queue g 0 MKSTREAM", 0)
	for round := range rounds {
		id := strconv.Itoa(round+1) + "-0"
		v.do("XADD @queue "+id+" body a\nXREADGROUP GROUP g w~20000 STREAMS @queue >\n"+
			"XCLAIM @queue g w~20000 0 "+id+" IDLE 30000 RETRYCOUNT 1 JUSTID", 0)
		var wg sync.WaitGroup
		var moved atomic.Int64
		for _, e := range clients {
			wg.Go(func() {
				reply, err := sweep(func(a *reclaimArgs) { a.Start, a.Interval = "0-0", 1_000_000 })(e).ToArray()
				if err != nil {
					t.Error(err)
					return
				}
				r := replyReader{reply: reply}
				_, _, _ = r.int(), r.int(), r.string()
				moved.Add(r.int())
			})
		}
		wg.Wait()
		if n := moved.Load(); n != 1 {
			t.Fatalf("round %d: moved %d times", round, n)
		}
	}
	entries, err := clients[0].redis.Do(t.Context(), clients[0].redis.B().Xrange().Key(k.Retry).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range entries {
		seen[e.FieldValues["oid"]] = true
		if e.FieldValues["lc"] != "1" {
			t.Errorf("%s was charged %s times", e.FieldValues["oid"], e.FieldValues["lc"])
		}
	}
	if len(entries) != rounds || len(seen) != rounds {
		t.Errorf("%d entries of %d messages are on the retry stream, want %d", len(entries), len(seen), rounds)
	}
}
