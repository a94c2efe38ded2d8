package rsmq

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// Subscribe calls announced whenever a sender with Config.Realtime, a Node process among them, has sent to the queue: with the number of messages
// that the queue then had, hidden ones too. It returns when ctx ends, with its error.
//
// Nothing is announced when a hidden message becomes visible again, and what is announced while the connection is broken is lost: so
// go on polling, and take this as a reason to do it sooner. After a break it connects again by itself, and calls announced with -1.
func (c *Client) Subscribe(ctx context.Context, queue string, announced func(messages int64)) error {
	if err := checkQueue(queue); err != nil {
		return err
	}
	const most = 5 * time.Second
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, most) {
		began := time.Now()
		err := c.redis.Receive(ctx, c.redis.B().Subscribe().Channel(c.channel(queue)).Build(), func(m rueidis.PubSubMessage) {
			if n, err := strconv.ParseInt(m.Message, 10, 64); err == nil {
				announced(n)
			}
		})
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if refused(err) {
			return failed("subscribe to", queue, err, false)
		}
		if time.Since(began) > most {
			wait = 50 * time.Millisecond
		}
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
		announced(-1)
	}
}
