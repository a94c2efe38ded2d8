// Package rsmqmigrate moves the messages of an RSMQ queue to a queue of xstreamq.
//
// Where both queues lie in one slot, as on every Redis that is no cluster, each message moves in one step. Elsewhere it is hidden from the consumers
// of RSMQ, copied and then deleted, and its id is noted beside the copy: a run that ends midway leaves a message hidden, and the next run
// finishes it without a second copy.
package rsmqmigrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// Queues names what is moved, and where to.
type Queues struct {
	// Namespace and Name are those of the RSMQ queue.
	Namespace, Name string
	// Prefix and To are those of the queue of xstreamq.
	Prefix, To string
}

// Counts is how many messages there are of each kind.
type Counts struct {
	// Visible ones can be received now, Delayed ones later, for the first time: both are moved.
	Visible, Delayed int64
	// InFlight ones were received and are hidden; NoBody ones lost their body. They stay.
	InFlight, NoBody int64
	// NextIn is how long until the first of those in flight is visible again, unless its consumer deletes it. 0 if there is none.
	NextIn time.Duration
}

// Moved is how many were moved, or would be.
func (c *Counts) Moved() int64 { return c.Visible + c.Delayed }

// ErrNoTag is for a Redis Cluster, where a queue of RSMQ can only be used if its namespace has a {tag}.
var ErrNoTag = errors.New("the keys of the RSMQ queue lie in different slots of the cluster: its namespace has no {tag}")

const (
	pageSize    = 200
	callTimeout = 5 * time.Second
)

func (q Queues) keys() keySet {
	base := q.Namespace + ":" + q.Name
	to := keys.ForQueue(q.Prefix, q.To)
	return keySet{Hash: base + ":Q", Messages: base, Queue: to.Queue, Delayed: to.Delayed, Migrated: keys.Migrated(q.Prefix, q.To)}
}

// Survey counts what Move would move, and what it would leave.
func Survey(ctx context.Context, rc rueidis.Client, q Queues) (Counts, error) {
	m, err := newMover(rc, q)
	if err != nil {
		return Counts{}, err
	}
	var total Counts
	for skip, more := int64(0), true; more; skip += pageSize {
		var page Counts
		if page, more, err = m.survey(ctx, skip); err != nil {
			return total, fmt.Errorf("survey of the RSMQ queue %q: %w", q.Name, err)
		}
		total.add(page)
	}
	return total, nil
}

// Move moves all messages that are visible or delayed, also those that are sent meanwhile, until there is none. progress, if not nil, is told
// how many were moved so far. After an error, or the death of the process, Move may be called again: no message is lost, and none is
// there twice. Two may run at once.
func Move(ctx context.Context, rc rueidis.Client, q Queues, progress func(moved int64)) (Counts, error) {
	m, err := newMover(rc, q)
	if err != nil {
		return Counts{}, err
	}
	if progress != nil {
		m.progress = progress
	}
	total, err := m.move(ctx)
	if err != nil {
		err = fmt.Errorf("move of the RSMQ queue %q to %q: %w", q.Name, q.To, err)
	}
	return total, err
}

// add adds the counts of another part of the queue.
func (c *Counts) add(o Counts) {
	c.Visible += o.Visible
	c.Delayed += o.Delayed
	c.InFlight += o.InFlight
	c.NoBody += o.NoBody
	if c.NextIn == 0 || o.NextIn > 0 && o.NextIn < c.NextIn {
		c.NextIn = o.NextIn
	}
}
