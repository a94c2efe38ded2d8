package xstreamq

import (
	"context"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/service"
)

// extendPage bounds one script call that renews leases.
const extendPage = 200

// Modes of the extend script.
const (
	modeRenew     = "renew"
	modeCheck     = "check"
	modeUnstarted = "unstarted"
	modeStarted   = "started"
)

// Replies of the extend script, per id.
const (
	leaseLost int64 = iota
	leaseHeld
	leaseOfNothing // held, but the entry is gone: it cannot be renewed
)

// newRenewer returns the loop that keeps the leases of everything in this process: of what waits for a handler, runs, or
// waits for its outcome to be written.
func (s *subscription) newRenewer() *service.Loop {
	// An answer that is lost must not cost the lease: there is time to ask again.
	timeout := min(max(s.opts.VisibilityTimeout/3, 500*time.Millisecond), commandTimeout)
	return service.New(service.Options{
		Name: "renewer", Step: s.renew, Timeout: timeout, OnError: s.loopError("renewer"),
	})
}

// renewTick is how often leases are looked at; one is renewed when a third of it is over.
func (s *subscription) renewTick() time.Duration {
	return min(max(s.opts.VisibilityTimeout/20, 5*time.Millisecond), time.Second)
}

func (s *subscription) renew(ctx context.Context) (time.Duration, error) {
	vt := s.opts.VisibilityTimeout
	now := time.Now()
	var failed error
	if late := s.pool.unstarted(now.Add(-vt)); len(late) > 0 {
		failed = s.giveBack(ctx, late)
	}
	if err := s.settleRepeats(ctx); err != nil {
		failed = err
	}
	due := s.pool.due(now, vt, s.opts.MaxExtension)
	for _, d := range due.overlong {
		d.ctx.finish(ErrMaxExtension)
	}
	for _, l := range s.lanes {
		if err := s.extend(ctx, l, modeRenew, due.renew); err != nil {
			failed = s.repaired(ctx, l, err)
		}
		if err := s.extend(ctx, l, modeCheck, due.check); err != nil {
			failed = s.repaired(ctx, l, err)
		}
	}
	if failed == nil {
		s.pool.finalize(due.overlong)
	}
	return s.renewTick(), failed
}

// extend renews or checks the leases of one lane, in pages, and ends the handlers of those that are lost.
func (s *subscription) extend(ctx context.Context, l *lane, mode string, all []*delivery) error {
	ds := ofLane(all, l)
	ids := idsOf(ds)
	for len(ds) > 0 {
		asked := time.Now()
		states, err := s.extendIDs(ctx, l, mode, ids)
		if err != nil {
			return err
		}
		n := len(states)
		for _, d := range s.pool.extended(ds[:n], states, asked) {
			d.ctx.finish(ErrLeaseLost)
			s.log.Warn("lease lost: another worker has the message", "id", d.entry.Original, "attempt", d.entry.Failures+d.entry.Lost+1)
		}
		ds, ids = ds[n:], ids[n:]
	}
	return nil
}

// extendIDs is one call of the extend script. It returns the state of each of the first ids: at least one, maybe not all.
func (s *subscription) extendIDs(ctx context.Context, l *lane, mode string, ids []string) ([]int64, error) {
	ids = ids[:min(len(ids), extendPage)]
	states, err := runExtend(ctx, s.client.redis, l.keys, extendArgs{
		Group: l.group, Consumer: s.consumer, Mode: mode, IDs: ids,
	}).AsIntSlice()
	if err == nil && (len(states) == 0 || len(states) > len(ids)) {
		err = fmt.Errorf("xstreamq: %d answers for %d leases", len(states), len(ids))
	}
	return states, err
}

// dueLeases is what one round of the renewer has to do.
type dueLeases struct {
	renew    []*delivery
	check    []*delivery
	overlong []*delivery // run for longer than MaxExtension; renewed a last time
}

// due returns the leases that are a third over. The oldest come first, so the walk ends early.
func (p *pool) due(now time.Time, vt, maxExtension time.Duration) dueLeases {
	p.mu.Lock()
	defer p.mu.Unlock()
	var due dueLeases
	for d := p.held.first; d != nil; d = d.links[byLease].next {
		if now.Sub(d.renewed) < vt/3 && maxExtension < 0 {
			break
		}
		overlong := maxExtension >= 0 && d.state == running && now.Sub(d.started) >= maxExtension
		switch {
		case d.lost || d.gone || d.final && d.state == running:
		case overlong:
			due.overlong = append(due.overlong, d)
			due.renew = append(due.renew, d)
		case now.Sub(d.renewed) < vt/3:
		case maxExtension < 0 && d.state == running:
			if now.Sub(d.renewed) >= vt {
				due.check = append(due.check, d)
			}
		default:
			due.renew = append(due.renew, d)
		}
	}
	return due
}

// extended notes what the extend script said, and returns the deliveries whose handlers must end. What has a verdict already is
// left to its settle: its row may be gone because it was written just now.
func (p *pool) extended(ds []*delivery, states []int64, asked time.Time) (lost []*delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, d := range ds {
		switch {
		case d.state == ended:
		case states[i] == leaseOfNothing:
			d.gone = true
		case states[i] == leaseHeld:
			d.renewed = asked
			p.held.remove(d)
			p.held.push(d)
		case d.state == unstarted:
			p.drop(d)
			lost = append(lost, d)
		case d.state == running:
			d.lost = true
			p.nextSuspect(d)
			lost = append(lost, d)
		}
	}
	return lost
}

// finalize marks deliveries whose leases run out now, unless their handlers return before. A handler that hangs keeps no suspect
// waiting.
func (p *pool) finalize(ds []*delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range ds {
		d.final = true
		p.nextSuspect(d)
	}
}
