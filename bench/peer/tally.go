package peer

import (
	"sync"
	"sync/atomic"
	"time"
)

// tally counts what a worker's handlers get. Its handle is the whole handler.
type tally struct {
	handled, sum, first, last atomic.Int64
	latencies                 []atomic.Int32

	mu  sync.Mutex
	err error // of the first body that was none of ours
}

// newTally keeps the latencies of the sequence numbers below keep.
func newTally(keep int) *tally {
	t := &tally{latencies: make([]atomic.Int32, keep)}
	for i := range t.latencies {
		t.latencies[i].Store(-1)
	}
	return t
}

func (t *tally) handle(body []byte) {
	now := time.Now().UnixNano()
	nanos, seq, err := ParseBody(body)
	if err != nil {
		t.fail(err)
		return
	}
	if t.handled.Add(1) == 1 {
		t.first.Store(now)
	}
	t.sum.Add(int64(seq))
	t.last.Store(now)
	if seq < len(t.latencies) {
		t.latencies[seq].Store(int32((now - nanos) / 1000))
	}
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

func (t *tally) event() Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return Event{Kind: Failed, Error: t.err.Error()}
	}
	e := Event{Kind: Worked, Handled: t.handled.Load(), Sum: t.sum.Load(), First: t.first.Load(), Last: t.last.Load()}
	e.Latencies = make([]int32, len(t.latencies))
	for i := range t.latencies {
		e.Latencies[i] = t.latencies[i].Load()
	}
	return e
}
