package xstreamq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Place is where a message lies.
type Place string

const (
	// InQueue is the queue's stream.
	InQueue Place = "queue"
	// InRetry is the group's retry stream, with what workers hold of it.
	InRetry Place = "retry"
	// InDelayed is the set of delayed publishes of the queue.
	InDelayed Place = "delayed"
	// InBackoff is the set of the group's failed messages that wait for their next try.
	InBackoff Place = "backoff"
	// InDLQ is the group's dead-letter queue.
	InDLQ Place = "dlq"
)

// PeekOptions say where Peek looks. The zero value looks at the next ten messages of the queue.
type PeekOptions struct {
	// From is the place to look at. Default InQueue.
	From Place
	// Count is how many messages it returns at most. Default 10. Negative is an error.
	Count int
}

func (o PeekOptions) withDefaults() PeekOptions {
	setDefault(&o.From, InQueue)
	setDefault(&o.Count, 10)
	return o
}

func (o PeekOptions) validate(queue, group string) error {
	if o.Count < 0 {
		return fmt.Errorf("%w: PeekOptions: Count must not be negative", ErrInvalidConfig)
	}
	switch o.From {
	case InQueue, InDelayed:
		if group == "" {
			return checkName("queue", queue)
		}
	case InRetry, InBackoff, InDLQ:
	default:
		return fmt.Errorf("%w: PeekOptions: there is no place %.80q", ErrInvalidConfig, o.From)
	}
	return checkNames(queue, group)
}

// StoredMessage is a message where it lies.
type StoredMessage struct {
	Place Place
	// ID is its id there: of the entry, or for InDelayed and InBackoff that of the message itself.
	ID string
	// OriginalID is the id that Publish returned. Empty for what another program put into InDelayed without one: it gets it when it
	// is due.
	OriginalID string
	// Body is nil when the entry has none.
	Body   []byte
	Header map[string]string
	// PublishedAt is zero when the ids do not tell.
	PublishedAt time.Time
	// Due is when it is delivered, for InDelayed and InBackoff. Zero when the score is no time until the year 9999.
	Due time.Time
	// Failures, LostLeases and Error are what the message carries so far.
	Failures, LostLeases int
	Error                string
	// Reason and At are set for InDLQ: why it is dead, and since when.
	Reason Reason
	At     time.Time
}

// Peek looks at messages without consuming them. In the queue it looks at those that the group has not been given yet, or, for
// an empty group name, at the first of the stream; in the sets at those that are due next; else at the oldest. Only InQueue and
// InDelayed go without a group. Bodies are fetched in pages of some 512 KiB; what moves between two pages may be missed. A delayed member that
// cannot be read has its ID, cut to 200 bytes, and Due alone. ErrInvalidConfig, ErrNoQueue, ErrNoGroup. Without a deadline each
// call to Redis is given 5s.
func (c *Client) Peek(ctx context.Context, queue, group string, o PeekOptions) ([]StoredMessage, error) {
	o = o.withDefaults()
	if err := o.validate(queue, group); err != nil {
		return nil, err
	}
	found, err := c.peek(ctx, queue, group, o)
	if err == nil && len(found) == 0 {
		err = c.known(ctx, queue, group)
	}
	if err != nil {
		return nil, opError("peek", queue, group, err)
	}
	return found, nil
}

func (c *Client) peek(ctx context.Context, queue, group string, o PeekOptions) ([]StoredMessage, error) {
	k := keys.ForGroup(c.cfg.KeyPrefix, queue, group)
	switch o.From {
	case InRetry:
		return c.peekStream(ctx, k.Retry, "-", o)
	case InDLQ:
		return c.peekStream(ctx, k.DLQ, "-", o)
	case InDelayed:
		return c.peekSet(ctx, k.Delayed, o)
	case InBackoff:
		return c.peekSet(ctx, k.Backoff, o)
	case InQueue:
	}
	first, err := c.firstUndelivered(ctx, k, queue, group)
	if err != nil || first == "" {
		return nil, err
	}
	return c.peekStream(ctx, k.Queue, first, o)
}

// firstUndelivered is where to look for what a group was not given yet; empty after the last id that can be.
func (c *Client) firstUndelivered(ctx context.Context, k keys.Set, queue, group string) (string, error) {
	if group == "" {
		return "-", nil
	}
	groups, err := c.groupsOnStream(ctx, k.Queue)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(groups, func(g Group) bool { return g.Name == group })
	if i < 0 {
		return "-", c.known(ctx, queue, group)
	}
	delivered, ok := wire.ParseID(groups[i].Delivered)
	if !ok {
		return "", fmt.Errorf("key %s: %q is no id", k.Queue, groups[i].Delivered)
	}
	if delivered.Next() == delivered {
		return "", nil
	}
	return delivered.Next().String(), nil
}

// peekStream decodes the entries of a stream. Only the engine writes to the others than the queue.
func (c *Client) peekStream(ctx context.Context, key, first string, o PeekOptions) ([]StoredMessage, error) {
	var found []StoredMessage
	for pages := c.pages(key, first, "+"); pages.more() && len(found) < o.Count; {
		page, err := pages.page(ctx, o.Count-len(found))
		if err != nil {
			return nil, err
		}
		for _, stored := range page {
			var e wire.Entry
			e.Decode(stored.id, stored.fields, o.From != InQueue)
			found = append(found, storedMessage(&e, o.From))
		}
	}
	return found, nil
}

// foreignID is how much of a member that cannot be read serves as its id, in bytes.
const foreignID = 200

// peekSet decodes the members of a set, which are entries as the queue will have them, or messages of ours that failed.
func (c *Client) peekSet(ctx context.Context, key string, o PeekOptions) ([]StoredMessage, error) {
	var found []StoredMessage
	take, size := pageFirst, 0
	for len(found) < o.Count {
		take = min(take, o.Count-len(found))
		page, err := c.members(ctx, key, len(found), take)
		if err != nil {
			return nil, keyError(key, err)
		}
		for _, z := range page {
			size += len(z.Member)
			found = append(found, storedMember(z, o.From))
		}
		if len(page) < take {
			break
		}
		take = nextPage(take, len(found), size)
	}
	return found, nil
}

// members fetches n members of a set, from one on, by their score.
func (c *Client) members(ctx context.Context, key string, from, n int) ([]rueidis.ZScore, error) {
	rc := c.redis
	return bounded(ctx, func(ctx context.Context) ([]rueidis.ZScore, error) {
		ask := rc.B().Zrange().Key(key).Min(strconv.Itoa(from)).Max(strconv.Itoa(from + n - 1)).Withscores().Build()
		return rc.Do(ctx, ask).AsZScores()
	})
}

func storedMember(z rueidis.ZScore, place Place) StoredMessage {
	var e wire.Entry
	err := e.DecodeMember(z.Member, place == InBackoff)
	if err != nil && len(e.ID) > foreignID {
		e.ID = e.ID[:foreignID]
	}
	if place == InDelayed && !wire.Scheduled(e.Original) {
		e.Original, e.Published = "", time.Time{} // the queue does not believe it
	}
	m := storedMessage(&e, place)
	const lastYear = 253402300800000 // the year 10000, which JSON cannot write
	if z.Score >= 0 && z.Score < lastYear {
		m.Due = time.UnixMilli(int64(z.Score))
	}
	return m
}

func storedMessage(e *wire.Entry, place Place) StoredMessage {
	m := StoredMessage{
		Place: place, ID: e.ID, OriginalID: e.Original, Body: e.Body, Header: e.Header, PublishedAt: e.Published,
		Failures: e.Failures, LostLeases: e.Lost, Error: e.Error,
	}
	if place == InDLQ {
		m.Reason, m.At = Reason(e.Reason), e.At
	}
	return m
}
