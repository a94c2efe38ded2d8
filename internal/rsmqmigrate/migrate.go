// Package rsmqmigrate moves the messages of an RSMQ queue to a queue of xstreamq.
package rsmqmigrate

import (
	"context"
	"crypto/rand"
	"encoding/hex"
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
	// Visible ones can be received now, Delayed ones later: both are moved.
	Visible, Delayed int64
	// InFlight ones were received and are hidden; NoBody ones lost their body. They stay.
	InFlight, NoBody int64
}

func (c *Counts) add(o Counts) {
	c.Visible += o.Visible
	c.Delayed += o.Delayed
	c.InFlight += o.InFlight
	c.NoBody += o.NoBody
}

// ErrCrossSlot: on a Redis Cluster the two queues lie in different slots, so no message can be moved in one step.
var ErrCrossSlot = errors.New("the two queues lie in different slots of the cluster; give the RSMQ namespace the tag {TO}")

const (
	page        = 200
	callTimeout = 5 * time.Second
)

func (q Queues) keys() keySet {
	base := q.Namespace + ":" + q.Name
	to := keys.ForQueue(q.Prefix, q.To)
	return keySet{Hash: base + ":Q", Messages: base, Queue: to.Queue, Delayed: to.Delayed}
}

// Survey counts what Move would move, and what it would leave.
func Survey(ctx context.Context, rc rueidis.Client, q Queues) (Counts, error) {
	var total Counts
	for skip, more := int64(0), true; more; skip += page {
		var n Counts
		var err error
		n, more, err = call(ctx, func(ctx context.Context) rueidis.RedisResult {
			return runSurvey(ctx, rc, q.keys(), surveyArgs{Skip: skip, Count: page})
		})
		if err != nil {
			return total, err
		}
		total.add(n)
	}
	return total, nil
}

// Move moves all messages that are visible or delayed, also those that are sent meanwhile, until there is none. Each is moved in one
// step: a process that dies, or a lost answer, leaves it in one of the two queues, and Move may be called again. progress, if not nil, is told how
// many were moved so far.
func Move(ctx context.Context, rc rueidis.Client, q Queues, progress func(moved int64)) (Counts, error) {
	var total Counts
	for {
		n, err := pass(ctx, rc, q, func(moved int64) {
			if progress != nil {
				progress(total.Visible + total.Delayed + moved)
			}
		})
		total.Visible += n.Visible
		total.Delayed += n.Delayed
		total.InFlight, total.NoBody = n.InFlight, n.NoBody
		// What stayed may have changed its place meanwhile, so a pass that finds nothing to move is the last.
		if err != nil || n.Visible+n.Delayed == 0 {
			return total, err
		}
	}
}

// pass goes through the queue once. What it leaves comes first in the queue, so it is skipped.
func pass(ctx context.Context, rc rueidis.Client, q Queues, progress func(moved int64)) (Counts, error) {
	var total Counts
	for more := true; more; {
		left := total.InFlight + total.NoBody
		n, again, err := call(ctx, func(ctx context.Context) rueidis.RedisResult {
			return runMove(ctx, rc, q.keys(), moveArgs{Skip: left, Count: page, Nonce: nonce()})
		})
		if err != nil {
			return total, err
		}
		total.add(n)
		more = again
		progress(total.Visible + total.Delayed)
	}
	return total, nil
}

func call(ctx context.Context, run func(context.Context) rueidis.RedisResult) (n Counts, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := run(ctx).AsIntSlice()
	if answer, ok := rueidis.IsRedisErr(err); ok && len(answer.Error()) > 9 && answer.Error()[:9] == "CROSSSLOT" {
		return n, false, ErrCrossSlot
	}
	if err == nil && len(reply) != 5 {
		err = fmt.Errorf("the script answered with %d items", len(reply))
	}
	if err != nil {
		return n, false, err
	}
	return Counts{reply[0], reply[1], reply[2], reply[3]}, reply[4] == 1, nil
}

// nonce tells apart messages that are due in the same millisecond.
func nonce() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	return hex.EncodeToString(b[:])
}
