package xstreamq

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
)

const (
	// lagMost is how many entries are looked at before their number is called unknown.
	lagMost = 1_000_000
	// lagCheck is how many entries at either end are counted before the server's word is taken, lagPage how many a later call counts.
	lagCheck = 500
	lagPage  = 1000
)

// Lag counts the messages of a queue that a group has not been given yet. Redis 7 and newer keep that number, as a rule, and lose it
// or keep a wrong one when undelivered entries are deleted or trimmed and when the group was created or set amid the stream. So it
// is counted where that takes a call or two, which is when fewer than some 500 entries either wait or are delivered and not yet
// trimmed. Else what Redis says is taken if it can be true. If it cannot, and on older servers, entries are counted from both ends, which
// takes about a second per 500,000; after a million the answer is UnknownLag, without an error.
//
// A group that is registered and not on the stream would be given all of it. ErrNoQueue, ErrNoGroup. Without a deadline
// each call to Redis is given 5s.
func (c *Client) Lag(ctx context.Context, queue, group string) (int64, error) {
	if err := checkNames(queue, group); err != nil {
		return 0, err
	}
	d, err := c.depth(ctx, queue, group)
	if err != nil {
		return 0, opError("lag", queue, group, err)
	}
	return d.Backlog, nil
}

// backlog counts what a group has not been given, and looks at most entries for that. changed: it cannot be told any more, because
// entries went away meanwhile.
func (c *Client) backlog(ctx context.Context, k keys.Set, s *snapshot, most int64) (n int64, changed bool, err error) {
	switch s.undelivered {
	case "":
		return 0, false, nil
	case s.first:
		return s.length, false, nil
	}
	// Both have their first entry besides what is counted.
	waiting := tally{n: 1, at: s.undelivered, to: s.newest}
	finished := tally{n: 1, at: s.first, to: s.delivered}
	for page := int64(lagCheck); waiting.n+finished.n < most; page = lagPage {
		if err := c.count(ctx, k, &waiting, page); err != nil || waiting.broken {
			return 0, waiting.broken, err
		}
		if waiting.done {
			return waiting.n, false, nil
		}
		if !finished.broken {
			if err := c.count(ctx, k, &finished, page); err != nil {
				return 0, false, err
			}
		}
		if finished.done {
			return s.length - finished.n, false, nil
		}
		if s.lag > waiting.n && s.lag < s.length-finished.n {
			return s.lag, false, nil
		}
	}
	return UnknownLag, false, nil
}

// tally counts the entries of a part of the stream, page by page.
type tally struct {
	n      int64
	at, to string
	done   bool
	broken bool // the entry to go on from is gone, and others may be
}

// count counts one page more.
func (c *Client) count(ctx context.Context, k keys.Set, t *tally, most int64) error {
	reply, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runCount(ctx, c.redis, k, countArgs{From: t.at, To: t.to, Most: most}).ToArray()
	})
	if err != nil {
		return keyError(k.Queue, err)
	}
	r := replyReader{reply: reply}
	there, n, at := r.int(), r.int(), r.string()
	t.n, t.at = t.n+n, at
	t.broken = there == 0
	t.done = !t.broken && at == ""
	return r.err
}
