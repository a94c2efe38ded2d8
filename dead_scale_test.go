package xstreamq_test

import (
	"testing"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// With 500,000 dead letters every call to Redis is short. The test takes some seconds, and -short leaves it out.
func TestHalfAMillionDeadLetters(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("500,000 dead letters are left out by -short")
	}
	server := redistest.Start(t, redistest.Options{})
	r := deadRigAt(t, server.URL(), "p:")
	meter := newMeter(t, server.URL())
	r.client = stopNew(t, meter, xstreamq.Config{KeyPrefix: "p:"})
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
		s.run()
		meter.check(s.name, stalls/2)
	}
	if got := r.len(r.keys.DLQ); got != left {
		t.Errorf("%d dead letters are left, want %d", got, left)
	}
}
