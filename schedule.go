package xstreamq

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/service"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// promoteEvery is how often due messages are looked for at least. What is due later than that is known ahead, and on time.
const promoteEvery = 450 * time.Millisecond

// promotePage is how many members of each zset one call moves at most.
const promotePage = 200

// schedulePage bounds one script call that stores delayed messages; so does scheduleBytes.
const (
	schedulePage  = 100
	scheduleBytes = 1 << 20
)

// schedule stores delayed messages in one step: all of them or none.
func (q *Queue[T]) schedule(ctx context.Context, ms []outgoing) ([]string, error) {
	items := make([]string, 0, 4*len(ms))
	for i := range ms {
		kind, when := "in", millis(ms[i].in)
		if !ms[i].at.IsZero() {
			kind, when = "at", strconv.FormatInt(max(0, ms[i].at.UnixMilli()), 10)
		}
		items = append(items, kind, when, nonce(), packOutgoing(&ms[i]))
	}
	ids, err := runPublish(ctx, q.client.redis, q.keys, publishArgs{Items: items}).AsStrSlice()
	if err != nil {
		q.client.heed(err)
		return nil, publishError(q.name, err, true)
	}
	if len(ids) != len(ms) {
		return nil, fmt.Errorf("%w: %q: the server returned %d ids for %d messages", ErrPublishUncertain, q.name, len(ids), len(ms))
	}
	return ids, nil
}

// scheduleAll stores the delayed messages of a batch, in pages; at says where in results each belongs.
func (q *Queue[T]) scheduleAll(ctx context.Context, ms []outgoing, at []int, results []PublishResult) {
	for len(ms) > 0 {
		n, size := 0, 0
		for n < len(ms) && n < schedulePage && (n == 0 || size+len(ms[n].body) <= scheduleBytes) {
			size += len(ms[n].body)
			n++
		}
		ids, err := q.schedule(ctx, ms[:n])
		for i := range n {
			if err != nil {
				results[at[i]].Err = err
			} else {
				results[at[i]].ID = ids[i]
			}
		}
		ms, at = ms[n:], at[n:]
	}
}

// nonce tells apart messages that are due in the same millisecond.
func nonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails, by its contract
	return hex.EncodeToString(b[:])
}

func packOutgoing(m *outgoing) string {
	b := wire.AppendPacked(make([]byte, 0, len(m.body)+32), wire.Body)
	b = wire.AppendPacked(b, rueidis.BinaryString(m.body))
	for i := 0; i < len(m.header); i += 2 {
		b = wire.AppendPacked(b, wire.Header+m.header[i])
		b = wire.AppendPacked(b, m.header[i+1])
	}
	return rueidis.BinaryString(b)
}

// newPromoter returns the loop that moves due messages to where they are read: delayed publishes to the queue, failed
// messages to the group's retry stream.
func (s *subscription) newPromoter() *service.Loop {
	return service.New(service.Options{
		Name: "promoter", Step: s.promote, Timeout: commandTimeout, OnError: s.loopError("promoter"),
	})
}

// promoteGap lies between two looks at least, however many short retries wake the loop.
const promoteGap = 10 * time.Millisecond

func (s *subscription) promote(ctx context.Context) (time.Duration, error) {
	pause(ctx, promoteGap)
	reply, err := runPromote(ctx, s.client.redis, s.queueLane.keys, promoteArgs{
		Page: promotePage, Cap: int64(s.opts.RetryMaxLen),
	}).ToArray()
	if err != nil {
		return 0, err
	}
	r := replyReader{reply: reply}
	queued, retried, next, problems := r.int(), r.int(), r.int(), r.strings()
	if r.err != nil {
		return 0, r.err
	}
	s.observePromoted(queued, retried)
	if len(problems) > 0 {
		return 0, fmt.Errorf("some due messages stay where they are: %s", problems[0])
	}
	if next < 0 {
		return promoteEvery - promoteGap, nil
	}
	return max(0, min(time.Duration(next)*time.Millisecond, promoteEvery)-promoteGap), nil
}
