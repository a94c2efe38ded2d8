package producer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Messages are due at the rate whatever happens: what nobody took in time is handed out at once, with the time at which it was due.
func TestPacerIsAnOpenLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPacer(50, 10)
		began := time.Now()
		due := make([]time.Time, 8)
		take := func(wantFirst, wantN int, at time.Duration) {
			t.Helper()
			first, n := p.take(t.Context(), due)
			if first != wantFirst || n != wantN || time.Since(began) != at {
				t.Errorf("%d messages from %d after %v; want %d from %d after %v", n, first, time.Since(began), wantN, wantFirst, at)
			}
			for i := range n {
				if want := time.Duration(first+i) * 100 * time.Millisecond; due[i].Sub(began) != want {
					t.Errorf("message %d was due after %v, want %v", first+i, due[i].Sub(began), want)
				}
			}
		}
		take(0, 1, 0)
		take(1, 1, 100*time.Millisecond)
		time.Sleep(time.Second) // nobody asks: an outage
		take(2, 8, 1100*time.Millisecond)
		take(10, 2, 1100*time.Millisecond)
		take(12, 1, 1200*time.Millisecond)
		time.Sleep(time.Hour)
		for first := 13; first < 50; first += 8 {
			take(first, min(8, 50-first), 1200*time.Millisecond+time.Hour)
		}
		if _, n := p.take(t.Context(), due); n != 0 {
			t.Errorf("%d messages more", n)
		}
	})
}

func TestPacerWithoutRate(t *testing.T) {
	t.Parallel()
	p := newPacer(10, 0)
	due := make([]time.Time, 8)
	for _, want := range []int{8, 2, 0} {
		if _, n := p.take(t.Context(), due); n != want {
			t.Errorf("%d messages, want %d", n, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, n := newPacer(10, 0).take(ctx, due); n != 0 {
		t.Errorf("%d messages after the end", n)
	}
	if _, n := newPacer(10, 1e-9).take(ctx, due); n != 0 {
		t.Errorf("%d messages after the end", n)
	}
}
