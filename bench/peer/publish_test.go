package peer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

// recorder keeps how often each sequence number was stored.
type recorder struct {
	mu      sync.Mutex
	seqs    map[int]int
	largest int
}

func (r *recorder) put(_ context.Context, bodies [][]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.largest = max(r.largest, len(bodies))
	for _, body := range bodies {
		_, seq, err := ParseBody(body)
		if err != nil {
			return err
		}
		r.seqs[seq]++
	}
	return nil
}

func (r *recorder) check(t *testing.T, n int) {
	t.Helper()
	for seq := range n {
		if r.seqs[seq] != 1 {
			t.Errorf("message %d was stored %d times", seq, r.seqs[seq])
		}
	}
	if len(r.seqs) != n {
		t.Errorf("%d messages were stored, want %d", len(r.seqs), n)
	}
}

func TestPublishStoresEachOnce(t *testing.T) {
	t.Parallel()
	for _, batch := range []int{1, 10} {
		r := &recorder{seqs: map[int]int{}}
		e, err := publish(t.Context(), r.put, 1_234, batch, 7)
		if err != nil || e.Kind != Published || e.Last < e.First {
			t.Errorf("batches of %d: %+v, %v", batch, e, err)
		}
		if r.largest > batch {
			t.Errorf("a batch of %d, want at most %d", r.largest, batch)
		}
		r.check(t, 1_234)
	}
}

func TestPaceKeepsTheRate(t *testing.T) {
	t.Parallel()
	const n, rate = 500, 5_000
	r := &recorder{seqs: map[int]int{}}
	e, err := pace(t.Context(), r.put, n, rate, 4)
	if err != nil {
		t.Fatal(err)
	}
	r.check(t, n)
	// The last message is due (n-1)/rate after the first. How late it may be is up to the machine.
	if took := float64(e.Last-e.First) / 1e9; took < (n-1.0)/rate {
		t.Errorf("%d messages at %d/s took %gs only", n, rate, took)
	}
}

func TestPublishEndsWithTheFirstError(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	_, err := publish(t.Context(), func(context.Context, [][]byte) error { return refused }, 1_000_000, 1, 3)
	if !errors.Is(err, refused) {
		t.Errorf("got %v, want %v", err, refused)
	}
}

// A producer that stood still does not start the clock of its messages anew.
func TestTurnDoesNotHideStandingStill(t *testing.T) {
	t.Parallel()
	began := time.Unix(1_796_060_000, 0)
	for _, row := range []struct{ now, want time.Duration }{
		{100 * time.Millisecond, 100 * time.Millisecond}, // just due
		{100*time.Millisecond + tick/2, 100*time.Millisecond + tick/2},
		{5 * time.Second, 100*time.Millisecond + tick},
	} {
		if got := turn(began, began.Add(row.now), 200, 2000).Sub(began); got != row.want {
			t.Errorf("looked at after %v: %v, want %v", row.now, got, row.want)
		}
	}
}
