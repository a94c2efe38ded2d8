package rsmqmigrate

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// mover is one run.
type mover struct {
	redis    rueidis.Client
	keys     keySet
	apart    bool // the queues are in different slots
	progress func(moved int64)
}

func newMover(rc rueidis.Client, q Queues) (*mover, error) {
	m := &mover{redis: rc, keys: q.keys(), progress: func(int64) {}}
	if rc.Mode() == rueidis.ClientModeCluster {
		if tag(m.keys.Hash) != tag(m.keys.Messages) {
			return nil, ErrNoTag
		}
		m.apart = tag(m.keys.Messages) != tag(m.keys.Queue)
	}
	return m, nil
}

// tag is the part of a key that picks its slot in a cluster. Two that differ may be in one slot by chance, which does no harm here.
func tag(key string) string {
	if _, after, ok := strings.Cut(key, "{"); ok {
		if inner, _, ok := strings.Cut(after, "}"); ok && inner != "" {
			return inner
		}
	}
	return key
}

// move goes through the queue until a pass finds nothing to move.
func (m *mover) move(ctx context.Context) (Counts, error) {
	var total Counts
	step := m.together
	if m.apart {
		// First what an earlier run left behind: it is the oldest.
		n, err := m.pass(ctx, m.unfinished, 0)
		if total.add(Counts{Visible: n.Visible, Delayed: n.Delayed}); err != nil {
			return total, err
		}
		step = m.copied
	}
	for {
		n, err := m.pass(ctx, step, total.Moved())
		moved := Counts{Visible: total.Visible + n.Visible, Delayed: total.Delayed + n.Delayed}
		total = Counts{moved.Visible, moved.Delayed, n.InFlight, n.NoBody, n.NextIn}
		// What stayed may have changed its place meanwhile, so a pass that finds nothing to move is the last.
		if err != nil || n.Moved() == 0 {
			return total, err
		}
	}
}

// page is what a step did with some messages of a queue.
type page struct {
	Counts
	stay int64 // messages that are left where they were
	more bool  // there may be more
}

// pass goes through the queue once. What stays comes first in the queue, so it is skipped. before is how many were moved by earlier passes.
func (m *mover) pass(ctx context.Context, step func(ctx context.Context, skip int64) (page, error), before int64) (Counts, error) {
	var total Counts
	for p, skip := (page{more: true}), int64(0); p.more; skip += p.stay {
		var err error
		p, err = step(ctx, skip)
		total.add(p.Counts)
		if err != nil {
			return total, err
		}
		if p.Moved() > 0 {
			m.progress(before + total.Moved())
		}
	}
	return total, nil
}

// together moves messages in one step each.
func (m *mover) together(ctx context.Context, skip int64) (page, error) {
	reply, err := ints(ctx, 6, func(ctx context.Context) rueidis.RedisResult {
		return runMove(ctx, m.redis, m.keys, moveArgs{Skip: skip, Count: pageSize, Nonce: nonce()})
	})
	if err != nil {
		return page{}, err
	}
	c := counts(reply)
	return page{c, c.InFlight + c.NoBody, reply[5] == 1}, nil
}

// survey counts a page of messages.
func (m *mover) survey(ctx context.Context, skip int64) (c Counts, more bool, err error) {
	reply, err := ints(ctx, 6, func(ctx context.Context) rueidis.RedisResult {
		return runSurvey(ctx, m.redis, m.keys, surveyArgs{Skip: skip, Count: pageSize})
	})
	if err != nil {
		return Counts{}, false, err
	}
	return counts(reply), reply[5] == 1, nil
}

// counts reads the counts that a script's answer begins with.
func counts(reply []int64) Counts {
	return Counts{reply[0], reply[1], reply[2], reply[3], waiting(reply[4])}
}

func waiting(ms int64) time.Duration { return time.Duration(max(0, ms)) * time.Millisecond }

// ints runs a script that answers with n numbers.
func ints(ctx context.Context, n int, run func(context.Context) rueidis.RedisResult) ([]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := run(ctx).AsIntSlice()
	if err == nil && len(reply) != n {
		err = fmt.Errorf("a script answered with %d items instead of %d", len(reply), n)
	}
	return reply, err
}

// nonce tells apart messages that are due in the same millisecond, and were sent in the same microsecond.
func nonce() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	return hex.EncodeToString(b[:])
}
