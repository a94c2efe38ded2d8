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

// poll receives until something comes or wait is over. next is how long until a hidden message is due.
func (c *Client) poll(
	ctx context.Context, wait time.Duration, receive func(context.Context) (ms []Message, next time.Duration, err error),
) ([]Message, error) {
	end := time.Now().Add(wait)
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		ms, next, err := c.once(ctx, receive)
		left := time.Until(end)
		if err != nil || len(ms) > 0 || left <= 0 {
			return ms, err
		}
		if next >= 0 {
			pause = min(pause, max(next, time.Millisecond))
		}
		timer := time.NewTimer(min(pause, left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
	}
}

func (c *Client) once(
	ctx context.Context, receive func(context.Context) ([]Message, time.Duration, error),
) ([]Message, time.Duration, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return receive(ctx)
}
