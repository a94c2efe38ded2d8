package sweep_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/loadtest/internal/sweep"
)

// window of ten seconds whose backlog is a function of the second, with a sample every 100 ms.
func window(asked float64, acked int64, backlog func(s float64) float64) sweep.Window {
	w := sweep.Window{Asked: asked, Acked: acked, Took: 10 * time.Second}
	for i := range 101 {
		at := time.Duration(i) * 100 * time.Millisecond
		w.Backlog = append(w.Backlog, sweep.Sample{At: at, Backlog: int64(backlog(at.Seconds()))})
	}
	return w
}

func TestSustained(t *testing.T) {
	t.Parallel()
	flat := func(float64) float64 { return 12 }
	for _, row := range []struct {
		name   string
		window sweep.Window
		why    string
	}{
		{"as asked", window(8000, 80000, flat), ""},
		{"97 %", window(8000, 77600, flat), ""},
		{"a little less", window(8000, 77500, flat), "7750/s acknowledged"},
		{"grows", window(8000, 80000, func(s float64) float64 { return 200 * s }), "backlog grows by 200/s"},
		{"grows by 1 %", window(80000, 800000, func(s float64) float64 { return 790 * s }), ""},
		{"grows a trace, at a low rate", window(2000, 20000, func(s float64) float64 { return 40 * s }), ""},
		{"grew at first", window(8000, 80000, func(s float64) float64 { return min(s, 5) * 3000 }), ""},
		{"shrinks", window(8000, 80000, func(s float64) float64 { return 50000 - 3000*s }), ""},
		{"jumps about", window(8000, 80000, func(s float64) float64 { return 300 + 300*math.Sin(50*s) }), ""},
		{"grows late", window(8000, 80000, func(s float64) float64 { return max(0, s-7) * 4000 }), "backlog grows by 2857/s"},
		{"a moment of noise at its end", window(8000, 80000, func(s float64) float64 {
			if s > 9 {
				return 5000
			}
			return 10
		}), ""},
		{"grows after it", sweep.Window{Asked: 10, Acked: 20, Took: 2 * time.Second, Backlog: []sweep.Sample{
			{time.Second, 1}, {1500 * time.Millisecond, 1}, {2 * time.Second, 1}, {3 * time.Second, 9999}}}, ""},
		{"unseen", sweep.Window{Asked: 10, Acked: 20, Took: 2 * time.Second}, "the backlog was not seen"},
		{"seen at one time", sweep.Window{Asked: 10, Acked: 20, Took: 2 * time.Second, Backlog: []sweep.Sample{
			{time.Second, 1}, {time.Second, 2}, {time.Second, 3}}}, "the backlog was not seen"},
		{"empty", sweep.Window{Asked: 10}, "0/s acknowledged"},
	} {
		ok, why := row.window.Sustained()
		if ok != (row.why == "") || why != row.why {
			t.Errorf("%s: %v, %q; want %q", row.name, ok, why, row.why)
		}
	}
}

func TestHighest(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name              string
		can, limit        float64
		steps             int
		tried             []float64
		sustained, broken float64
	}{
		{"between", 11000, 1e6, 3, []float64{2000, 4000, 8000, 16000, 12000, 10000, 11000}, 11000, 12000},
		{"not at all", 0, 1e6, 2, []float64{2000, 1000, 500}, 0, 500},
		{"all", 1e9, 16000, 3, []float64{2000, 4000, 8000, 16000}, 16000, 0},
		{"unrefined", 5000, 1e6, 0, []float64{2000, 4000, 8000}, 4000, 8000},
	} {
		var tried []float64
		sustained, broken, err := sweep.Highest(t.Context(), 2000, row.limit, row.steps, func(_ context.Context, rate float64) (bool, error) {
			tried = append(tried, rate)
			return rate <= row.can, nil
		})
		if diff := cmp.Diff(row.tried, tried); diff != "" || err != nil || sustained != row.sustained || broken != row.broken {
			t.Errorf("%s: %v to %v, %v\n%s", row.name, sustained, broken, err, diff)
		}
	}
	failed := errors.New("no server")
	for after := range 5 {
		calls := 0
		_, _, err := sweep.Highest(t.Context(), 2000, 1e6, 3, func(_ context.Context, rate float64) (bool, error) {
			if calls++; calls > after {
				return false, failed
			}
			return rate <= 4000, nil
		})
		if !errors.Is(err, failed) || calls != after+1 {
			t.Errorf("after %d: %v in %d calls", after, err, calls)
		}
	}
}
