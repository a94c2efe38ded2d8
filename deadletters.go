package xstreamq

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Attempts is how often the message was delivered before it was dead: its failures and lost leases, and the delivery whose body could
// not be decoded, which is neither.
func (d *DeadMessage) Attempts() int {
	n := d.Failures + d.LostLeases
	if d.Reason == Undecodable {
		n++
	}
	return n
}

// DeadLetters walks the dead letters of a group that a filter chooses, oldest first, up to the newest there is when the
// loop begins. Nothing is changed. Pages of some 512 KiB are fetched as the loop goes on. An error ends the loop.
// ErrInvalidConfig for a filter that cannot work, ErrNoQueue, ErrNoGroup. Without a deadline each call to Redis is given
// 5s.
func (c *Client) DeadLetters(ctx context.Context, queue, group string, f DeadFilter) iter.Seq2[DeadMessage, error] {
	return func(yield func(DeadMessage, error) bool) {
		choose, err := f.compile()
		if err != nil {
			yield(DeadMessage{}, err)
			return
		}
		w, err := c.walkDead(ctx, queue, group, choose)
		if err != nil {
			yield(DeadMessage{}, err)
			return
		}
		for w.more() {
			page, err := w.page(ctx)
			if err != nil {
				yield(DeadMessage{}, opError("dead letters", queue, group, err))
				return
			}
			for i := range page {
				if !yield(page[i].DeadMessage, nil) {
					return
				}
			}
		}
	}
}

// DeadLetterByID returns one dead letter by its id in the dead-letter stream. ErrNoMessage when it is not there (any more),
// ErrInvalidMessage for what is no such id, ErrNoQueue, ErrNoGroup. Without a deadline each call to Redis is given 5s.
func (c *Client) DeadLetterByID(ctx context.Context, queue, group, id string) (DeadMessage, error) {
	if err := checkNames(queue, group); err != nil {
		return DeadMessage{}, err
	}
	parsed, err := parseIDs([]string{id})
	if err != nil {
		return DeadMessage{}, err
	}
	d, found, err := c.deadByID(ctx, queue, group, parsed[0])
	if err == nil && !found {
		if err = c.known(ctx, queue, group); err == nil {
			err = fmt.Errorf("%w: there is no dead letter %s", ErrNoMessage, parsed[0])
		}
	}
	if err != nil {
		return DeadMessage{}, opError("dead letter", queue, group, err)
	}
	return d, nil
}

// deadByID looks a dead letter up.
func (c *Client) deadByID(ctx context.Context, queue, group, id string) (d DeadMessage, found bool, err error) {
	key := keys.ForGroup(c.cfg.KeyPrefix, queue, group).DLQ
	entries, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return c.redis.Do(ctx, c.redis.B().Xrange().Key(key).Start(id).End(id).Build()).ToArray()
	})
	if err != nil || len(entries) == 0 {
		if err != nil {
			err = keyError(key, err)
		}
		return d, false, err
	}
	_, fields, err := splitEntry(entries[0])
	if err != nil {
		return d, false, err
	}
	var e wire.Entry
	e.Decode(id, fields, true)
	return deadMessage(&e, queue, group), true, nil
}

// deadEntry is a dead letter as a walk finds it.
type deadEntry struct {
	DeadMessage
	bodiless bool
	packed   bool // some of its headers are in xq:packed
}

// staysFor is why it cannot be redriven, as lua/redrive.lua puts it; empty = it can.
func (d *deadEntry) staysFor(toQueue bool) string {
	switch {
	case d.bodiless && d.Reason == BodyLost:
		return string(BodyLost)
	case d.bodiless:
		return string(NoBody)
	case toQueue && d.packed:
		return "it has headers in xq:packed, which nobody unpacks on the queue"
	}
	return ""
}

// deadWalk reads the dead letters of a group that a filter chooses.
type deadWalk struct {
	entries      *entryPages
	queue, group string
	choose       *deadChooser
	last         wire.ID // the newest one when the walk began
	looked       int     // at how many so far, chosen or not
}

// walkDead begins at the oldest one. A walk of none at all is an error only if there is no such group.
func (c *Client) walkDead(ctx context.Context, queue, group string, choose *deadChooser) (*deadWalk, error) {
	if err := checkNames(queue, group); err != nil {
		return nil, err
	}
	w := &deadWalk{queue: queue, group: group, choose: choose}
	if err := c.beginWalk(ctx, w); err != nil {
		return nil, opError("dead letters", queue, group, err)
	}
	return w, nil
}

func (c *Client) beginWalk(ctx context.Context, w *deadWalk) (err error) {
	if w.choose.byAge() {
		if w.choose.begun, err = c.timeOfServer(ctx); err != nil {
			return err
		}
	}
	key := keys.ForGroup(c.cfg.KeyPrefix, w.queue, w.group).DLQ
	newest, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return c.redis.Do(ctx, c.redis.B().Xrevrange().Key(key).End("+").Start("-").Count(1).Build()).ToArray()
	})
	if err != nil {
		return keyError(key, err)
	}
	if len(newest) == 0 {
		w.entries = &entryPages{done: true}
		return c.known(ctx, w.queue, w.group)
	}
	last, _, err := splitEntry(newest[0])
	if err != nil {
		return err
	}
	w.last, _ = wire.ParseID(last)
	w.entries = c.pages(key, "-", last)
	return nil
}

// more reports whether there may be another page.
func (w *deadWalk) more() bool { return w.entries.more() }

// page returns those of the next page that the filter chooses.
func (w *deadWalk) page(ctx context.Context) ([]deadEntry, error) {
	entries, err := w.entries.page(ctx, 0)
	if err != nil {
		return nil, err
	}
	w.looked += len(entries)
	chosen := make([]deadEntry, 0, len(entries))
	for i := range entries {
		var e wire.Entry
		e.Decode(entries[i].id, entries[i].fields, true)
		d := deadEntry{deadMessage(&e, w.queue, w.group), !e.HasBody, isPacked(entries[i].fields)}
		if w.choose.chooses(&d.DeadMessage) {
			chosen = append(chosen, d)
		}
	}
	return chosen, nil
}

func isPacked(fields []rueidis.RedisMessage) bool {
	for i := 0; i+1 < len(fields); i += 2 {
		if name, _ := fields[i].ToString(); name == wire.Packed {
			return true
		}
	}
	return false
}

func (c *Client) timeOfServer(ctx context.Context) (time.Time, error) {
	parts, err := bounded(ctx, func(ctx context.Context) ([]int64, error) {
		return c.redis.Do(ctx, c.redis.B().Time().Build()).AsIntSlice()
	})
	if err == nil && len(parts) != 2 {
		err = fmt.Errorf("%d parts", len(parts))
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("asking the server's time: %w", err)
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}
