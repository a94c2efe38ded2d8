package xstreamq

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/internal/service"
)

// settleEvery is how often outcomes that could not be written are tried again.
const settleEvery = 250 * time.Millisecond

// unsettled holds deliveries whose outcome could not be written yet.
type unsettled struct {
	mu   sync.Mutex
	list []parked
}

type parked struct {
	d      *delivery
	v      verdict
	unsure bool // an earlier write may have been carried out
}

func (u *unsettled) add(p ...parked) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, p...)
}

func (u *unsettled) takeAll() []parked {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.list
	u.list = nil
	return all
}

func (u *unsettled) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.list)
}

// park keeps an outcome for later.
func (s *subscription) park(d *delivery, v verdict, err error) {
	if s.settleCtx.Err() != nil {
		s.pool.forget(d)
		return
	}
	s.log.Warn("an outcome cannot be written yet; the message stays where it is, and it is tried again",
		"id", d.entry.Original, "outcome", string(v.outcome), "error", err)
	refused := redisCode(err) != ""
	s.unwritten.add(parked{d, v, !refused})
	s.pool.parked(d)
}

// newSettler returns the loop that tries parked outcomes again.
func (s *subscription) newSettler() *service.Loop {
	return service.New(service.Options{Name: "settler", Step: s.settleParked, OnError: s.loopError("settler")})
}

// settleParked tries every parked outcome once. One that Redis refuses, such as a key of the wrong type, does not hold up the
// others; a connection that is down does.
func (s *subscription) settleParked(ctx context.Context) (time.Duration, error) {
	todo := s.unwritten.takeAll()
	if len(todo) == 0 {
		return settleEvery, nil
	}
	var failed error
	for i := 0; i < len(todo); {
		n, err := s.settleNext(ctx, todo[i:])
		if err != nil {
			failed = err
			refused := redisCode(err) != ""
			for j := range todo[i : i+n] {
				todo[i+j].unsure = todo[i+j].unsure || !refused
			}
			s.unwritten.add(todo[i : i+n]...)
			if !refused {
				s.unwritten.add(todo[i+n:]...)
				break
			}
		}
		i += n
	}
	if failed != nil {
		return 0, fmt.Errorf("%d outcomes are not written: %w", s.unwritten.len(), failed)
	}
	return settleEvery, nil
}

// settleNext tries the first of the parked outcomes; acks of one lane go together. It returns how many it tried.
func (s *subscription) settleNext(ctx context.Context, todo []parked) (n int, err error) {
	first := todo[0]
	if !first.v.isAck() {
		err = s.write(ctx, first.d, first.v, first.unsure)
		return 1, s.repaired(ctx, first.d.lane, err)
	}
	var ds []*delivery
	for _, p := range todo {
		if !p.v.isAck() || p.d.lane != first.d.lane || len(ds) == ackBatch {
			break
		}
		ds = append(ds, p.d)
	}
	return len(ds), s.ack(ctx, first.d.lane, ds, first.unsure)
}

// repaired brings back a group that a write found gone, so that the next try can succeed.
func (s *subscription) repaired(ctx context.Context, l *lane, err error) error {
	if err != nil && groupGone(err) {
		if mend := s.repair(ctx, l); mend != nil {
			return mend
		}
	}
	return err
}
