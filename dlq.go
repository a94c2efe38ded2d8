package xstreamq

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// DeadMessage is a dead letter, as OnDeadLetter and DeadLetters show it.
type DeadMessage struct {
	Queue, Group string
	// ID is its id in the dead-letter stream.
	ID string
	// OriginalID is the id that Publish returned.
	OriginalID string
	// Body is the body as it was published, byte for byte; nil for no-body and body-lost.
	Body   []byte
	Header map[string]string
	Reason Reason
	// Error is the last error, at most 2 KiB.
	Error string
	// Failures and LostLeases count all there were, with the one that used up the budget.
	Failures, LostLeases int
	// At is the server's time of the move; From is the id of the entry it left, By the consumer that held it.
	At       time.Time
	From, By string
}

func deadMessage(e *wire.Entry, queue, group string) DeadMessage {
	return DeadMessage{
		Queue: queue, Group: group, ID: e.ID, OriginalID: e.Original, Body: e.Body, Header: e.Header,
		Reason: Reason(e.Reason), Error: e.Error, Failures: e.Failures, LostLeases: e.Lost,
		At: e.At, From: e.From, By: e.By,
	}
}

// readDead fetches one dead letter that was just made.
func (s *subscription) readDead(ctx context.Context, id string) (DeadMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	d, found, err := s.client.deadByID(ctx, s.queue, s.group, id)
	if err != nil {
		return d, fmt.Errorf("reading dead letter %s: %w", id, err)
	}
	if !found {
		return d, fmt.Errorf("dead letter %s is gone", id)
	}
	return d, nil
}

// deathsKept is how many dead letters wait for OnDeadLetter at most.
const deathsKept = 8192

// buried has OnDeadLetter told about a dead letter that this process just made. When it cannot keep up, the rest is only
// logged: nobody waits for a callback.
func (s *subscription) buried(id string) {
	if s.opts.OnDeadLetter == nil {
		return
	}
	select {
	case s.deaths <- id:
	default:
		s.log.Warn("OnDeadLetter is too slow; a dead letter was not shown to it", "id", id)
	}
}

// notify calls OnDeadLetter, outside the path of the messages. A callback that panics harms nobody.
func (s *subscription) notify() {
	for {
		select {
		case id := <-s.deaths:
			s.tellBuried(id)
			continue
		default:
		}
		select {
		case id := <-s.deaths:
			s.tellBuried(id)
		case <-s.over:
			if len(s.deaths) == 0 {
				return
			}
		}
	}
}

func (s *subscription) tellBuried(id string) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("OnDeadLetter panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithTimeout(s.settleCtx, callbackTimeout)
	defer cancel()
	dead, err := s.readDead(ctx, id)
	if err != nil {
		s.log.Warn("dead letter not shown to OnDeadLetter", "error", err)
		return
	}
	s.opts.OnDeadLetter(ctx, dead)
}

// splitEntry takes an entry of an XRANGE or XREADGROUP reply apart. fields is nil for an entry that is gone.
func splitEntry(m rueidis.RedisMessage) (id string, fields []rueidis.RedisMessage, err error) {
	pair, err := m.ToArray()
	if err == nil && len(pair) != 2 {
		err = fmt.Errorf("it has %d parts", len(pair))
	}
	if err != nil {
		return "", nil, fmt.Errorf("xstreamq: unexpected stream entry: %w", err)
	}
	if id, err = pair[0].ToString(); err != nil {
		return "", nil, fmt.Errorf("xstreamq: unexpected stream entry: %w", err)
	}
	if pair[1].IsNil() {
		return id, nil, nil
	}
	fields, err = pair[1].ToArray()
	return id, fields, err
}

// splitDead takes apart what the reclaim script says of a dead letter: id and reason.
func splitDead(s string) (id string, reason Reason) {
	id, why, _ := strings.Cut(s, " ")
	return id, Reason(why)
}
