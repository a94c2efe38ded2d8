package xstreamq

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// UnknownLag stands for a number of messages that could not be counted. It is never 0.
const UnknownLag = -1

// Depth is how many messages of a group are where, at one moment. A message is in one of Backlog, Pending, Retry, Backoff and Dead.
type Depth struct {
	Queue, Group string
	// Length is the number of entries in the queue's stream, those that are finished and not trimmed yet among them.
	Length int64
	// Backlog has not been delivered to the group yet: its lag. UnknownLag if it could not be counted.
	Backlog int64
	// Pending is leased by workers now.
	Pending int64
	// Retry waits on the retry stream for a worker.
	Retry int64
	// Backoff failed and waits for its next try.
	Backoff int64
	// Delayed is what was published to the queue with a delay and is not due yet, for all groups.
	Delayed int64
	// Dead is the number of dead letters.
	Dead int64
	// Oldest is how long ago, by the server's clock, the oldest message in Backlog, Pending and Retry was published, or became due if it was
	// delayed. Ids tell it; of the retry stream its first message stands for all. 0 when there is none, or ids tell no time.
	Oldest time.Duration
}

// Empty reports whether nothing waits in the group: no backlog, nothing pending, to retry or in backoff. Delayed messages and
// dead letters do not count. Depth sees all of it in one step, so a message on its way from one place to another is never missed.
func (d Depth) Empty() bool {
	return d.Backlog == 0 && d.Pending == 0 && d.Retry == 0 && d.Backoff == 0
}

// Depth counts the messages of a group. All is seen in one step; the backlog, where it has to be counted, is counted as by Lag
// right after that. For an empty group name it counts what every group has in common: Length, Delayed, and as Backlog all that is in the stream,
// which is what a new group would be given. A group that is registered and not on the stream would be given that as well.
// ErrNoQueue, ErrNoGroup. Without a deadline each call to Redis is given 5s.
func (c *Client) Depth(ctx context.Context, queue, group string) (Depth, error) {
	err := checkName("queue", queue)
	if group != "" {
		err = checkNames(queue, group)
	}
	if err != nil {
		return Depth{}, err
	}
	d, err := c.depth(ctx, queue, group)
	if err != nil {
		return Depth{}, opError("depth", queue, group, err)
	}
	return d, nil
}

// DepthOf is Depth for a group that StreamGroups or Groups has just shown, and does not ask for its place on the stream again: that
// takes the longer, the more groups a queue has, so it is for those who look at thousands. All else is seen in one step, later: a
// message that moved meanwhile may be counted twice, and is never missed. Errors and bounds are those of Depth.
func (c *Client) DepthOf(ctx context.Context, queue string, g Group) (Depth, error) {
	if err := checkNames(queue, g.Name); err != nil {
		return Depth{}, err
	}
	if !g.Present {
		return c.Depth(ctx, queue, g.Name)
	}
	d, err := c.measure(ctx, queue, g.Name, func(ctx context.Context, k keys.Set) rueidis.RedisResult {
		return runDepthof(ctx, c.redis, k, depthofArgs{
			Group: g.Name, RetryGroup: keys.RetryGroup(g.Name), Delivered: g.Delivered, Pending: g.Pending, Lag: g.Lag,
		})
	})
	if groupGone(err) { // by now
		return c.Depth(ctx, queue, g.Name)
	}
	if err != nil {
		return Depth{}, opError("depth", queue, g.Name, err)
	}
	return d, nil
}

// snapshot is what the depth script sees. Ids are empty where there is none.
type snapshot struct {
	now                 time.Time
	onQueue             bool // the group is on the queue's stream
	length, pending     int64
	lag                 int64  // as the server says it; -1: it does not
	delivered           string // the last id that the group was given
	first, undelivered  string // ids of the first entry, and of the first that the group was not given
	newest              string // id of the last entry; empty also when the first two are the same
	oldest              string // id of the oldest pending entry
	retry, retryPending int64
	retryHead           string // original id of the first message to retry

	delayed, backoff, dead int64
}

// depthTries is how often a backlog is counted anew because the stream was trimmed meanwhile.
const depthTries = 3

// depth is Depth for names that were checked. For an empty group its own keys are those of no group.
func (c *Client) depth(ctx context.Context, queue, group string) (Depth, error) {
	return c.measure(ctx, queue, group, func(ctx context.Context, k keys.Set) rueidis.RedisResult {
		return runDepth(ctx, c.redis, k, depthArgs{Group: group, RetryGroup: keys.RetryGroup(group)})
	})
}

// measure makes a Depth of the answer of one of its scripts.
func (c *Client) measure(
	ctx context.Context, queue, group string, script func(context.Context, keys.Set) rueidis.RedisResult,
) (Depth, error) {
	k := keys.ForGroup(c.cfg.KeyPrefix, queue, group)
	for try := 1; ; try++ {
		s, err := readSnapshot(bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) { return script(ctx, k).ToArray() }))
		if err != nil {
			return Depth{}, err
		}
		if s.nothing(group) {
			if err := c.known(ctx, queue, group); err != nil {
				return Depth{}, err
			}
		}
		backlog, changed, err := c.backlog(ctx, k, s, lagMost)
		if err != nil {
			return Depth{}, err
		}
		if changed && try < depthTries {
			continue
		}
		if changed {
			backlog = UnknownLag
		}
		return Depth{
			Queue: queue, Group: group, Length: s.length, Backlog: backlog, Pending: s.pending + s.retryPending,
			Retry: max(0, s.retry-s.retryPending), Backoff: s.backoff, Delayed: s.delayed, Dead: s.dead, Oldest: s.age(),
		}, nil
	}
}

func readSnapshot(reply []rueidis.RedisMessage, err error) (*snapshot, error) {
	if err != nil {
		return nil, err
	}
	r := replyReader{reply: reply}
	s := &snapshot{
		now: time.UnixMilli(r.int()), onQueue: r.int() == 1, length: r.int(), pending: r.int(), lag: r.int(),
		delivered: r.string(), first: r.string(), undelivered: r.string(), newest: r.string(), oldest: r.string(),
		retry: r.int(), retryPending: r.int(), retryHead: r.string(),
		delayed: r.int(), backoff: r.int(), dead: r.int(),
	}
	return s, r.err
}

// nothing reports that there is no sign of the group, or of the queue if no group is meant.
func (s *snapshot) nothing(group string) bool {
	if group == "" {
		return s.length+s.delayed == 0
	}
	return !s.onQueue && s.retry+s.backoff+s.dead == 0
}

func (s *snapshot) age() (oldest time.Duration) {
	for _, id := range []string{s.undelivered, s.oldest, s.retryHead} {
		if since := wire.Since(id); !since.IsZero() {
			oldest = max(oldest, s.now.Sub(since))
		}
	}
	return oldest
}
