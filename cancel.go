package xstreamq

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Cancel takes back a message that was published with a delay, by the id that Publish returned, and reports whether it did: false when it is due
// already, was cancelled before, or never was. Once it has returned true, no group gets the message. An id that is none of a delayed message
// is ErrInvalidMessage. Without a deadline it takes 5s at most for each call to Redis.
//
// After an error that came when the command had been sent already, the message may have been cancelled or not.
func (c *Client) Cancel(ctx context.Context, queue, id string) (bool, error) {
	if err := checkName("queue", queue); err != nil {
		return false, err
	}
	if !wire.Scheduled(id) {
		return false, fmt.Errorf("%w: %.80q is no id of a delayed message, which is d<due ms>-<nonce>", ErrInvalidMessage, id)
	}
	k := keys.ForQueue(c.cfg.KeyPrefix, queue)
	found, err := bounded(ctx, func(ctx context.Context) (int64, error) {
		return runCancel(ctx, c.redis, k, cancelArgs{ID: id}).AsInt64()
	})
	if err == nil && found != cancelCancelled {
		found, err = c.cancelElsewhere(ctx, k.Delayed, id)
	}
	if err != nil {
		return false, opError("cancelling "+id, queue, "", keyError(k.Delayed, err))
	}
	return found > 0, nil
}

// cancelPage is how many members one call to Redis looks at.
const cancelPage = 500

// cancelElsewhere looks through the whole set: what another program stored, or what could not be promoted and was put off, need not
// be due at the time that its id says, and among many large ones the script gives up.
func (c *Client) cancelElsewhere(ctx context.Context, key, id string) (int64, error) {
	for cursor := uint64(0); ; {
		page, err := bounded(ctx, func(ctx context.Context) (rueidis.ScanEntry, error) {
			scan := c.redis.B().Zscan().Key(key).Cursor(cursor).Match(id + "\x00*").Count(cancelPage).Build()
			return c.redis.Do(ctx, scan).AsScanEntry()
		})
		if err != nil {
			return 0, err
		}
		if len(page.Elements) > 0 { // a member and its score
			return bounded(ctx, func(ctx context.Context) (int64, error) {
				return c.redis.Do(ctx, c.redis.B().Zrem().Key(key).Member(page.Elements[0]).Build()).AsInt64()
			})
		}
		if cursor = page.Cursor; cursor == 0 {
			return 0, nil
		}
	}
}
