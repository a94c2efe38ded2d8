package producer

import (
	"context"
	"math"
	"sync"
	"time"
)

// pacer hands out the numbers of the messages when they are due: an open loop, which waits for no reply.
type pacer struct {
	total int
	rate  float64 // 0: all are due at once
	began time.Time

	mu   sync.Mutex // held while waiting, so that one goroutine at a time has a timer
	next int
}

func newPacer(total int, rate float64) *pacer {
	return &pacer{total: total, rate: rate, began: time.Now()}
}

// take returns the first number and how many are due, at most as many as due has room for, and writes when each was due. It waits
// until there is one. n is 0 when there are no more, or ctx has ended.
func (p *pacer) take(ctx context.Context, due []time.Time) (first, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next >= p.total || ctx.Err() != nil {
		return 0, 0
	}
	if p.rate > 0 {
		if wait := time.Until(p.dueAt(p.next)); wait > 0 && !sleep(ctx, wait) {
			return 0, 0
		}
	}
	now := time.Now()
	first = p.next
	for n < len(due) && p.next < p.total {
		at := now
		if p.rate > 0 {
			at = p.dueAt(p.next)
		}
		if at.After(now) {
			break
		}
		due[n] = at
		n++
		p.next++
	}
	return first, n
}

func (p *pacer) dueAt(seq int) time.Time {
	return p.began.Add(time.Duration(math.Round(float64(seq) * float64(time.Second) / p.rate)))
}
