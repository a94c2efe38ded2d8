package peer

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// store stores bodies, as many as the system's batch or fewer.
type store func(ctx context.Context, bodies [][]byte) error

// publish has callers store n messages as fast as they can.
func publish(ctx context.Context, put store, n, batch, callers int) (Event, error) {
	var next atomic.Int64
	began := time.Now()
	err := inParallel(ctx, callers, func(ctx context.Context) error {
		bodies := make([][]byte, 0, batch)
		for {
			from := int(next.Add(int64(batch))) - batch
			if from >= n {
				return nil
			}
			bodies = bodies[:0]
			for seq := from; seq < min(from+batch, n); seq++ {
				bodies = append(bodies, Body(time.Now(), seq))
			}
			if err := put(ctx, bodies); err != nil {
				return err
			}
		}
	})
	return Event{Kind: Published, First: began.UnixNano(), Last: time.Now().UnixNano()}, err
}

// tick is how often a paced producer looks what is due.
const tick = 500 * time.Microsecond

// turn is the time that a body carries: when somebody looked and found it due, but at most a tick after it was. So a producer that
// stood still meanwhile does not hide it.
func turn(began, now time.Time, seq int, rate float64) time.Time {
	due := began.Add(time.Duration(float64(seq) / rate * float64(time.Second)))
	if late := due.Add(tick); now.After(late) {
		return late
	}
	return now
}

// pace stores n messages at a rate. The time in a body is its turn, whether or not a caller was free for it then.
func pace(ctx context.Context, put store, n int, rate float64, callers int) (Event, error) {
	due := make(chan []byte, n)
	began := time.Now()
	go func() {
		defer close(due)
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		for seq := 0; seq < n; {
			now := time.Now()
			for ; seq < n && seq <= int(now.Sub(began).Seconds()*rate); seq++ {
				due <- Body(turn(began, now, seq, rate), seq)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	err := inParallel(ctx, callers, func(ctx context.Context) error {
		for body := range due {
			if err := put(ctx, [][]byte{body}); err != nil {
				return err
			}
		}
		return nil
	})
	return Event{Kind: Published, First: began.UnixNano(), Last: time.Now().UnixNano()}, err
}

// inParallel runs n of run; the first error ends the context of the others.
func inParallel(ctx context.Context, n int, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return ctx.Err()
}
