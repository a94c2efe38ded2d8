package xstreamq_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// deadSlow is what no call to Redis may take, in µs, and deadTooSlow what only one that looks at everything does, however busy
// the machine is.
const (
	deadSlow    = 10_000
	deadTooSlow = 50_000
)

// slowest runs something and returns the longest call to Redis of those commands, in µs; 0 when all were under deadSlow.
func (r *deadRig) slowest(run func(), commands ...string) (longest int64) {
	r.t.Helper()
	r.ask("SLOWLOG", "RESET")
	run()
	m := r.ask("SLOWLOG", "GET", "10000")
	entries, err := m.ToArray()
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range entries {
		entry, _ := entries[i].ToArray()
		took, _ := entry[2].AsInt64()
		words, err := entry[3].AsStrSlice()
		if err != nil {
			r.t.Fatal(err)
		}
		if slices.Contains(commands, words[0]) {
			longest = max(longest, took)
		}
	}
	return longest
}

// With 500,000 dead letters every call to Redis is short. The test takes some seconds, and -short leaves it out.
func TestHalfAMillionDeadLetters(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("500,000 dead letters are left out by -short")
	}
	server := redistest.Start(t, redistest.Options{})
	r := deadRigAt(t, server.URL(), "p:")
	r.ask("CONFIG", "SET", "slowlog-log-slower-than", strconv.Itoa(deadSlow))
	r.ask("CONFIG", "SET", "slowlog-max-len", "10000")
	const n = 500_000
	r.bury(1, n)
	left := n
	steps := []struct {
		name string
		run  func()
	}{
		{"DeadLetters", func() {
			if ids, err := r.deadIDs(xstreamq.DeadFilter{Error: "oo"}); err != nil || len(ids) != left {
				t.Errorf("%d shown of %d, %v", len(ids), left, err)
			}
		}},
		{"RedriveAll", func() {
			got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Limit: 20_000})
			left -= len(got.Redriven)
			if err != nil || len(got.Redriven) != 20_000 {
				t.Errorf("%d redriven, %v", len(got.Redriven), err)
			}
		}},
		{"PurgeAll", func() {
			purged, err := r.client.PurgeAll(t.Context(), "q", "g", xstreamq.PurgeAllOptions{Limit: 200_000})
			left -= purged
			if err != nil || purged != 200_000 {
				t.Errorf("%d purged, %v", purged, err)
			}
		}},
	}
	for _, s := range steps {
		calls := []string{"XRANGE", "XREVRANGE", "XDEL", "EVALSHA", "EVAL"}
		took := r.slowest(s.run, calls...)
		if took >= deadTooSlow { // what is slow by itself, and not for a busy machine, is slow again
			took = r.slowest(s.run, calls...)
		}
		t.Logf("%s: the longest call took %d µs; 0 = none over %d", s.name, took, deadSlow)
		if took >= deadTooSlow {
			t.Errorf("%s: a call took %d µs", s.name, took)
		}
	}
	if got := r.len(r.keys.DLQ); got != left {
		t.Errorf("%d dead letters are left, want %d", got, left)
	}
}
