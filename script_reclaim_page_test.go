package xstreamq

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// sweepPages sweeps the queue to its end, and returns what each call moved to the retry stream.
func sweepPages(t *testing.T, s scriptServer, e scriptEnv) (moved []int64) {
	t.Helper()
	start := "-"
	for len(moved) < 100 {
		a := reclaimArgs{Group: "g", Start: start, Last: e.now, Interval: 100_000, Lease: 30_000, Budget: 5, Seed: 7, Delays: []string{"60000"}}
		reply, err := runReclaim(e.ctx, s.redis, e.keys, a).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		r := replyReader{reply: reply}
		state, _, resume, retried := r.int(), r.int(), r.string(), r.int()
		if r.err != nil || state != reclaimSwept {
			t.Fatalf("state %d, error %v", state, r.err)
		}
		moved = append(moved, retried)
		if resume == "" {
			return moved
		}
		id, ok := wire.ParseID(resume)
		if !ok {
			t.Fatalf("resume after %q", resume)
		}
		start = id.Next().String()
	}
	t.Fatal("the sweep does not come to an end")
	return nil
}

// A sweep goes on where a page ended: after 500 rows, 200 moves or 1 MiB.
func TestScriptReclaimPages(t *testing.T) {
	t.Parallel()
	fresh := func(n uint64) string {
		return times(n, "XADD @queue %d-0 body a") + "XGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >\n"
	}
	large := strings.Repeat("x", 400<<10)
	pages := []struct {
		name   string
		before string
		want   string
	}{
		{"none expired", fresh(1200), "[0 0 0]"},
		{"exactly one page", fresh(500), "[0 0]"},
		{"all expired", fresh(450) + lapse(ids(1, 450)), "[200 200 50]"},
		{"the last ones expired", fresh(1010) + lapse(ids(801, 1010)), "[0 200 10]"},
		{"the first and the last", fresh(1001) + lapse("1-0 1001-0"), "[1 0 1]"},
		{"bytes", times(5, "XADD @queue %d-0 body "+large) + "XGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >" + lapse(ids(1, 5)), "[3 2]"},
	}
	for _, s := range scriptServers(t) {
		for i, p := range pages {
			t.Run(s.name+"/"+p.name, func(t *testing.T) {
				e, v := s.env(t, i)
				v.do(p.before, e.now)
				if got := fmt.Sprint(sweepPages(t, s, e)); got != p.want {
					t.Errorf("moved %s, want %s", got, p.want)
				}
			})
		}
	}
}

// What was lost together parts: waits are between half and all of the delay of that loss, and differ.
func TestScriptReclaimJitter(t *testing.T) {
	t.Parallel()
	const n = 150
	lost := func(times int) string {
		return fmt.Sprintf("XADD @retry %%d-0 body a oid %%d-1 lc %d", times)
	}
	cases := []struct {
		name   string
		before int // lost leases so far
		delays []string
		want   float64 // ms
	}{
		{"the second loss", 1, []string{"60000", "600000"}, 60_000},
		{"the third loss", 2, []string{"60000", "600000"}, 600_000},
		{"later ones", 40, []string{"60000", "600000"}, 600_000},
		{"no delays given", 3, nil, 1000},
		{"no wait", 1, []string{"0"}, 0},
	}
	for _, s := range scriptServers(t) {
		for i, c := range cases {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				e, v := s.env(t, i)
				v.do(times(n, lost(c.before))+`
					XGROUP CREATE @retry g-retry 0
					XREADGROUP GROUP g-retry c STREAMS @retry >
					XCLAIM @retry g-retry w~20000 0`+ids(1, n)+` IDLE 30000 RETRYCOUNT 1 JUSTID`, e.now)
				from := v.clock()
				reply := sweepRetry(func(a *reclaimArgs) { a.Budget, a.Delays = -1, c.delays })(e)
				if err := reply.Error(); err != nil {
					t.Fatal(err)
				}
				to := v.clock()
				scores, err := s.redis.Do(e.ctx, s.redis.B().Zrange().Key(e.keys.Backoff).Min("0").Max("-1").Withscores().Build()).AsZScores()
				if err != nil {
					t.Fatal(err)
				}
				different := map[float64]bool{}
				for _, z := range scores {
					different[z.Score] = true
					if low, high := float64(from)+0.5*c.want-1, float64(to)+c.want; z.Score < low || z.Score > high {
						t.Errorf("due %.0f ms after the sweep, want %.0f to %.0f", z.Score-float64(from), 0.5*c.want, c.want)
					}
				}
				if len(scores) != n || c.want > 0 && len(different) < n/2 {
					t.Errorf("%d of %d wait, for %d different times", len(scores), n, len(different))
				}
			})
		}
	}
}
