package xstreamq

import (
	"errors"
	"math"
	"testing"
	"time"
)

// The original's figure: the backoff grows with each failure and is capped, whatever the multiplier.
func TestBackoffGrowsAndIsCapped(t *testing.T) {
	t.Parallel()
	const initial, top = 100 * time.Millisecond, time.Minute
	tests := []struct {
		multiplier float64
		want       []time.Duration // before jitter, from the first attempt on
	}{
		{1, []time.Duration{initial, initial, initial, initial}},
		{1.5, []time.Duration{initial, 150 * time.Millisecond, 225 * time.Millisecond, 337500 * time.Microsecond}},
		{2, []time.Duration{initial, 2 * initial, 4 * initial, 8 * initial}},
		{10, []time.Duration{initial, 10 * initial, 100 * initial, top}},
	}
	for _, tt := range tests {
		b := Backoff{Initial: initial, Multiplier: tt.multiplier, Max: top}
		for i, want := range tt.want {
			wantDelay(t, b, i+1, want)
		}
		last := time.Duration(0)
		for attempt := 1; attempt < 2000; attempt++ {
			full := b.full(attempt)
			if full < last || full > top {
				t.Fatalf("multiplier %v: %v at attempt %d after %v before it", tt.multiplier, full, attempt, last)
			}
			last = full
		}
	}
}

// The original's figure: the jitter comes after the cap, and no attempt overflows or waits zero or less.
func TestBackoffOfAnyAttemptIsAboveZeroAndNeverOverflows(t *testing.T) {
	t.Parallel()
	for _, multiplier := range []float64{1, 1.5, 2, 10, math.MaxFloat64} {
		for _, initial := range []time.Duration{1, time.Millisecond, time.Second, maxDelay} {
			b := Backoff{Initial: initial, Multiplier: multiplier, Max: max(initial, time.Hour)}
			for _, attempt := range []int{math.MinInt, -1, 0, 1, 2, 62, 63, 64, 65, 100, 1023, 1024, 1025, 1_000_000, math.MaxInt} {
				least := time.Duration(1)
				if attempt >= 1_000_000 && multiplier > 1 {
					least = (b.Max + 1) / 2
				}
				if d := b.Delay(attempt, nil); d < least || d > b.Max {
					t.Errorf("%+v: Delay(%d) = %v", b, attempt, d)
				}
			}
		}
	}
}

// Messages that failed together part: the wait lies anywhere between half and all of the capped backoff.
func TestBackoffJitterSpreadsOverHalfOfTheCap(t *testing.T) {
	t.Parallel()
	b := Backoff{Initial: time.Second, Multiplier: 2, Max: time.Minute}
	const draws, parts = 4000, 10
	var seen [parts]int
	for range draws {
		d := b.Delay(1_000_000, nil)
		seen[min(int((d-30*time.Second)*parts/(30*time.Second)), parts-1)]++
	}
	for i, n := range seen {
		if n < draws/parts/2 || n > draws/parts*2 {
			t.Errorf("%d of %d waits are in part %d of %d", n, draws, i+1, parts)
		}
	}
}

// The waits after lost leases are those after failures, one later: the first loss waits for nothing.
func TestBackoffOfLostLeasesIsCappedToo(t *testing.T) {
	t.Parallel()
	delays := Backoff{Initial: time.Second, Multiplier: 2, Max: 5 * time.Second}.lostDelays(nil)
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}
	for i, d := range delays {
		w := 5 * time.Second
		if i < len(want) {
			w = want[i]
		}
		if d != w {
			t.Errorf("after loss %d: %v, not %v", i+2, d, w)
		}
	}
}

func TestBackoffFuncReplacesEverything(t *testing.T) {
	t.Parallel()
	failure := errors.New("no")
	for _, tt := range []struct{ returned, want time.Duration }{
		{3 * time.Second, 3 * time.Second}, {0, 0}, {-time.Second, 0}, {math.MinInt64, 0}, {math.MaxInt64, maxDelay},
	} {
		b := Backoff{Initial: time.Hour, Func: func(attempt int, err error) time.Duration {
			if attempt != 7 || !errors.Is(err, failure) {
				t.Errorf("Func(%d, %v)", attempt, err)
			}
			return tt.returned
		}}.withDefaults()
		if got := b.Delay(7, failure); got != tt.want {
			t.Errorf("Func says %v: Delay is %v, not %v", tt.returned, got, tt.want)
		}
	}
}

func TestBackoffDefaultsAndSpecialValues(t *testing.T) {
	t.Parallel()
	wantDelay(t, Backoff{}, 1, time.Second)
	wantDelay(t, Backoff{}, 2, 2*time.Second)
	wantDelay(t, Backoff{}, 1_000_000, 5*time.Minute)
	wantDelay(t, Backoff{Initial: time.Hour}, 9, time.Hour)
	wantDelay(t, Backoff{Initial: 1, Max: 1}, 5, 1)
	if d := (Backoff{Initial: -1}).Delay(5, nil); d != 0 {
		t.Errorf("a negative Initial waits %v", d)
	}
}

func TestBackoffRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for _, b := range []Backoff{
		{Multiplier: 0.5}, {Multiplier: -2}, {Multiplier: math.NaN()}, {Multiplier: math.Inf(1)},
		{Initial: time.Hour, Max: time.Minute}, {Max: -1},
	} {
		if err := (SubscribeOptions{Backoff: b}).withDefaults().validate("q", "g"); !errors.Is(err, ErrInvalidConfig) {
			t.Errorf("%+v: %v", b, err)
		}
	}
}

// wantDelay checks that a wait lies between half and all of full, in a few draws.
func wantDelay(t *testing.T, b Backoff, attempt int, full time.Duration) {
	t.Helper()
	for range 20 {
		if d := b.Delay(attempt, nil); d < full/2 || d > full {
			t.Errorf("Initial %v, Multiplier %v, Max %v: Delay(%d) = %v, not %v to %v",
				b.Initial, b.Multiplier, b.Max, attempt, d, full/2, full)
			return
		}
	}
}
