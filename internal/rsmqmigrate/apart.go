package rsmqmigrate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

const (
	// copyWithin is how soon after they were read messages must be copied, by the clocks of the two servers.
	copyWithin = 10 * time.Second
	// keepNote is how long the id of a copy is kept after its message was deleted: a run beside this one may have read it before.
	keepNote = 3 * copyWithin
	// keepUnfinished is how long it is kept otherwise: as long as the message is hidden.
	keepUnfinished = 9999999 * time.Second
)

// errStale: nothing was copied.
var errStale = fmt.Errorf("the messages were copied more than %s after they were read, or the clocks of the two servers differ; try again", copyWithin)

// hidden are messages that consumers of RSMQ do not get until they are deleted or given back.
type hidden struct {
	items []string // four per message: id, body, how often it was received, ms at which it is visible
	now   int64    // ms when they were read
}

func (h hidden) ids() []string {
	ids := make([]string, 0, len(h.items)/4)
	for i := 0; i < len(h.items); i += 4 {
		ids = append(ids, h.items[i])
	}
	return ids
}

// copied moves messages from one slot to another.
func (m *mover) copied(ctx context.Context, skip int64) (page, error) {
	return m.copy(ctx, skip, false)
}

// unfinished does that for those only that an earlier run left hidden.
func (m *mover) unfinished(ctx context.Context, skip int64) (page, error) {
	return m.copy(ctx, skip, true)
}

func (m *mover) copy(ctx context.Context, skip int64, only bool) (page, error) {
	h, p, err := m.fetch(ctx, skip, only)
	if err != nil || len(h.items) == 0 {
		return p, err
	}
	if err := m.write(ctx, h); err != nil {
		return p, err
	}
	gone, err := ints(ctx, len(h.ids()), func(ctx context.Context) rueidis.RedisResult {
		return runForget(ctx, m.redis, m.keys, forgetArgs{IDs: h.ids()})
	})
	if err != nil {
		return p, err
	}
	for i, n := range gone {
		if due, _ := strconv.ParseInt(h.items[4*i+3], 10, 64); due <= h.now {
			p.Visible += n
		} else {
			p.Delayed += n
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p, runSettle(ctx, m.redis, m.keys, settleArgs{Keep: keepNote.Milliseconds(), IDs: h.ids()}).Error()
}

// fetch hides and reads messages.
func (m *mover) fetch(ctx context.Context, skip int64, only bool) (hidden, page, error) {
	const head = 6
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := runFetch(ctx, m.redis, m.keys, fetchArgs{Skip: skip, Count: pageSize, Hidden: only}).ToArray()
	if err == nil && (len(reply) < head || (len(reply)-head)%4 != 0) {
		err = fmt.Errorf("a script answered with %d items", len(reply))
	}
	if err != nil {
		return hidden{}, page{}, err
	}
	var numbers [head]int64
	for i := range numbers {
		if numbers[i], err = reply[i].AsInt64(); err != nil {
			return hidden{}, page{}, err
		}
	}
	h := hidden{now: numbers[5], items: make([]string, len(reply)-head)}
	for i := range h.items {
		if h.items[i], err = reply[head+i].ToString(); err != nil {
			return hidden{}, page{}, err
		}
	}
	c := Counts{InFlight: numbers[0], NoBody: numbers[1], NextIn: waiting(numbers[3])}
	return h, page{c, c.InFlight + c.NoBody + numbers[2], numbers[4] == 1}, nil
}

// write copies messages. If that is refused they are given back.
func (m *mover) write(ctx context.Context, h hidden) error {
	within, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	status, err := runCopy(within, m.redis, m.keys, copyArgs{
		Read: h.now, Fresh: copyWithin.Milliseconds(), Keep: keepUnfinished.Milliseconds(), Nonce: nonce(), Messages: h.items,
	}).AsInt64()
	if err == nil && status == copyStale {
		err = errStale
	}
	if _, refused := rueidis.IsRedisErr(err); refused || errors.Is(err, errStale) {
		return errors.Join(err, m.giveBack(ctx, h))
	}
	return err
}

// giveBack makes messages visible when they would have been, unless they were deleted meanwhile.
func (m *mover) giveBack(ctx context.Context, h hidden) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	members := m.redis.B().Zadd().Key(m.keys.Messages).Xx().ScoreMember()
	for i := 0; i < len(h.items); i += 4 {
		due, err := strconv.ParseFloat(h.items[i+3], 64)
		if err != nil {
			return err
		}
		members = members.ScoreMember(due, h.items[i])
	}
	return m.redis.Do(ctx, members.Build()).Error()
}
