package rsmq

import (
	"context"
	"time"
)

// A long poll asks again after pollFirst, then twice as late each time, at most pollMost; sooner when a hidden message is due.
const (
	pollFirst = 10 * time.Millisecond
	pollMost  = 250 * time.Millisecond
)

// poll receives until something comes or wait is over. next is how long until a hidden message is due, negative when there is none.
func poll(ctx context.Context, wait time.Duration, receive func() (ms []Message, next time.Duration, err error)) ([]Message, error) {
	end := time.Now().Add(wait)
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		ms, next, err := receive()
		left := time.Until(end)
		if err != nil || len(ms) > 0 || left <= 0 {
			return ms, err
		}
		due := pause
		if next >= 0 {
			due = min(pause, max(next, time.Millisecond))
		}
		if !sleep(ctx, min(due, left)) {
			return nil, context.Cause(ctx)
		}
	}
}

// sleep waits; false when ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
