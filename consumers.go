package xstreamq

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Consumer is one name under which a worker reads. A subscription uses one name on the queue and on the retry stream.
type Consumer struct {
	Name string
	// Pending is how many messages it holds.
	Pending int64
	// Idle is how long ago it last asked for messages or renewed a lease.
	Idle time.Duration
	// Lease is the length of its leases, which its name says; 0 when it has none, or the name does not say.
	Lease time.Duration
	// Live: it gave a sign of life as lately as a running worker does, within its lease or 15s, whichever is longer. One
	// without leases gives none while all its handlers are busy.
	Live bool
}

// liveWithin is the least time that a consumer without a sign of life counts as live: a running one asks every 5s or so.
const liveWithin = 15 * time.Second

// Consumers lists the consumers of a group by name, on the queue and on the retry stream together. Those of workers that are gone
// stay for some minutes, or while they hold something. One call of some 2 ms for each of the two per 10,000 consumers. ErrNoQueue,
// ErrNoGroup. Without a deadline each call to Redis is given 5s.
func (c *Client) Consumers(ctx context.Context, queue, group string) ([]Consumer, error) {
	if err := checkNames(queue, group); err != nil {
		return nil, err
	}
	found, err := c.consumers(ctx, queue, group)
	if err == nil && len(found) == 0 {
		err = c.known(ctx, queue, group)
	}
	if err != nil {
		return nil, opError("consumers", queue, group, err)
	}
	return found, nil
}

func (c *Client) consumers(ctx context.Context, queue, group string) ([]Consumer, error) {
	var found []Consumer
	at := map[string]int{}
	for _, l := range c.lanesOf(queue, group) {
		answer, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
			return c.redis.Do(ctx, c.redis.B().XinfoConsumers().Key(l.keys.Source).Group(l.group).Build()).ToArray()
		})
		if err != nil && !groupGone(err) {
			return nil, keyError(l.keys.Source, err)
		}
		for i := range answer {
			one, err := readConsumer(&answer[i])
			if err != nil {
				return nil, err
			}
			if j, ok := at[one.Name]; ok {
				found[j].Pending += one.Pending
				found[j].Idle = min(found[j].Idle, one.Idle)
				continue
			}
			at[one.Name] = len(found)
			found = append(found, one)
		}
	}
	for i := range found {
		found[i].Live = found[i].Idle < max(liveWithin, found[i].Lease)
	}
	slices.SortFunc(found, func(a, b Consumer) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

func readConsumer(m *rueidis.RedisMessage) (Consumer, error) {
	about := readInfo(m)
	name := about.string("name")
	one := Consumer{Name: name, Pending: about.int("pending"), Idle: fromMillis(about.int("idle")), Lease: leaseOf(name)}
	return one, about.err
}

// leaseOf is the lease that a consumer's name ends in: ~<ms>.
func leaseOf(name string) time.Duration {
	tilde := strings.LastIndexByte(name, '~')
	ms, err := strconv.ParseUint(name[tilde+1:], 10, 63)
	if tilde < 0 || err != nil {
		return 0
	}
	return fromMillis(int64(ms))
}

// lanesOf are the two streams of a group.
func (c *Client) lanesOf(queue, group string) []lane {
	k := keys.ForGroup(c.cfg.KeyPrefix, queue, group)
	return []lane{{keys: k, group: group}, {keys: k.OnRetry(group), group: keys.RetryGroup(group), ours: true}}
}

// PendingMessage is a message that a worker holds.
type PendingMessage struct {
	// ID is its entry's id; From says on which stream: InQueue or InRetry.
	ID       string
	From     Place
	Consumer string
	// Idle is how long ago its lease was renewed.
	Idle time.Duration
	// Deliveries is how often Redis handed this entry out; 0 marks one that was given back. Attempts are counted in the message.
	Deliveries int64
}

// pendingPage is how many pending messages one call fetches.
const pendingPage = 500

// Pending walks what the workers of a group hold, the queue's first, then the retry stream's, each by id. Pages are fetched as the
// loop goes on, so what changes meanwhile may be seen or not. An error ends the loop. ErrNoQueue, ErrNoGroup. Without a
// deadline each call to Redis is given 5s.
func (c *Client) Pending(ctx context.Context, queue, group string) iter.Seq2[PendingMessage, error] {
	return func(yield func(PendingMessage, error) bool) {
		if err := checkNames(queue, group); err != nil {
			yield(PendingMessage{}, err)
			return
		}
		none := true
		for _, l := range c.lanesOf(queue, group) {
			for start := "-"; start != ""; {
				page, next, err := c.pendingFrom(ctx, &l, start)
				if err != nil {
					yield(PendingMessage{}, opError("pending", queue, group, err))
					return
				}
				for _, m := range page {
					none = false
					if !yield(m, nil) {
						return
					}
				}
				start = next
			}
		}
		if none {
			if err := c.known(ctx, queue, group); err != nil {
				yield(PendingMessage{}, opError("pending", queue, group, err))
			}
		}
	}
}

// pendingFrom fetches a page, and the id at which the next one starts; empty at the end. Without IDLE, for which the server would walk the
// whole list.
func (c *Client) pendingFrom(ctx context.Context, l *lane, start string) (page []PendingMessage, next string, err error) {
	rc := c.redis
	answer, err := bounded(ctx, func(ctx context.Context) (rueidis.RedisResult, error) {
		return rc.Do(ctx, rc.B().Xpending().Key(l.keys.Source).Group(l.group).Start(start).End("+").Count(pendingPage).Build()), nil
	})
	if err == nil {
		page, err = readPending(&answer)
	}
	if err != nil || len(page) == 0 {
		return nil, "", keyError(l.keys.Source, err)
	}
	for i := range page {
		page[i].From = InQueue
		if l.ours {
			page[i].From = InRetry
		}
	}
	last, ok := wire.ParseID(page[len(page)-1].ID)
	if ok && len(page) == pendingPage && last.Next() != last {
		next = last.Next().String()
	}
	return page, next, nil
}

// readPending reads the rows of an XPENDING. A group that is gone has none.
func readPending(r *rueidis.RedisResult) ([]PendingMessage, error) {
	answer, err := r.ToArray()
	if err != nil {
		if groupGone(err) {
			return nil, nil
		}
		return nil, err
	}
	rows := make([]PendingMessage, len(answer))
	for i := range answer {
		row, err := answer[i].ToArray()
		if err == nil && len(row) < 4 {
			err = fmt.Errorf("%d parts", len(row))
		}
		if err != nil {
			return nil, fmt.Errorf("unexpected row of XPENDING: %w", err)
		}
		r := replyReader{reply: row}
		rows[i] = PendingMessage{ID: r.string(), Consumer: r.string(), Idle: fromMillis(r.int()), Deliveries: r.int()}
		if r.err != nil {
			return nil, r.err
		}
	}
	return rows, nil
}
