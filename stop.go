package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// stop drains the subscription, once; later calls wait for the first. It returns by the end of ctx plus CancelGrace.
func (s *subscription) stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		go func() {
			s.stopErr = s.drain(ctx)
			close(s.gone)
		}()
	})
	limit, cancel := graceAfter(ctx, s.client.cfg.CancelGrace)
	defer cancel()
	select {
	case <-s.gone:
		return s.stopErr
	case <-limit.Done():
		err := fmt.Errorf("xstreamq: stopping queue %q, group %q: %w", s.queue, s.group, context.DeadlineExceeded)
		if n := len(s.pool.stillRunning()); n > 0 {
			return &DrainError{Handlers: n, Err: err}
		}
		return err
	}
}

// graceAfter returns a context that ends a while after another one.
func graceAfter(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	limit, cancel := context.WithCancel(context.WithoutCancel(ctx))
	timer := time.AfterFunc(time.Hour, cancel)
	timer.Stop()
	stop := context.AfterFunc(ctx, func() { timer.Reset(grace) })
	return limit, func() {
		stop()
		timer.Stop()
		cancel()
	}
}

func (s *subscription) drain(ctx context.Context) error {
	s.mu.Lock()
	s.halted = true
	close(s.quit)
	running := s.running
	s.mu.Unlock()
	if !running {
		s.bringUp.Wait()
		return nil
	}

	// The last writes get the end of the grace; nothing is sent after it.
	grace := s.client.cfg.CancelGrace
	limit, cancel := graceAfter(ctx, grace-grace/10)
	defer cancel()
	defer context.AfterFunc(limit, s.cutSettle)()
	defer context.AfterFunc(ctx, func() { s.cutWork(ErrDraining) })() // also while Redis holds up what follows

	close(s.draining)
	s.pool.close()
	s.haltReaders(ctx)
	// What cannot be given back now is parked, and counted by writeOut.
	_ = s.giveBack(limit, s.pool.unstarted(time.Now().Add(time.Hour)))
	s.awaitHandlers(ctx, limit, grace*3/4)
	err := s.writeOut(limit)

	left := s.pool.stillRunning()
	if len(left) == 0 {
		wait(limit, &s.workers) // the last of them may be writing their outcomes
	}
	err = errors.Join(err, s.leaveBehind(limit, left))
	close(s.over)
	wait(limit, &s.notifier)
	s.cutSettle()
	if len(left) > 0 {
		return &DrainError{Handlers: len(left), Err: err}
	}
	s.workers.Wait()
	s.cutWork(context.Canceled)
	return err
}

func (s *subscription) haltReaders(ctx context.Context) {
	var wg sync.WaitGroup
	for _, l := range s.lanes {
		wg.Go(func() { l.read.halt(ctx) })
	}
	wg.Wait()
}

// awaitHandlers waits for the handlers until ctx ends, which cancels them, and then a little more.
func (s *subscription) awaitHandlers(ctx, limit context.Context, grace time.Duration) {
	idle := s.pool.whenIdle()
	select {
	case <-idle:
		return
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	case <-limit.Done():
	}
}

// writeOut writes every outcome there is, and stops the loops.
func (s *subscription) writeOut(limit context.Context) error {
	for _, l := range s.lanes {
		l.acks.Close()
	}
	_ = s.settler.Stop(limit) // its end is not what matters: what is left is counted below
	var failed error
	for s.unwritten.len() > 0 && limit.Err() == nil {
		if _, failed = s.settleParked(limit); failed != nil {
			pause(limit, 20*time.Millisecond)
		}
	}
	for _, l := range s.loops {
		l.Halt()
	}
	for _, l := range s.loops {
		_ = l.Wait(limit)
	}
	if n := s.unwritten.len(); n > 0 {
		if failed == nil {
			failed = context.DeadlineExceeded
		}
		return fmt.Errorf("xstreamq: queue %q, group %q: %d outcomes could not be written; their messages come again: %w",
			s.queue, s.group, n, failed)
	}
	return nil
}

// leaveBehind marks the deliveries whose handlers still run, so that their leases run out as releases, gives back what else
// this consumer holds, and takes the consumer off the groups if it holds nothing.
func (s *subscription) leaveBehind(limit context.Context, left []*delivery) error {
	var failed error
	try := func(err error) {
		if failed == nil && !groupGone(err) { // what is gone holds nothing
			failed = err
		}
	}
	for _, l := range s.lanes {
		if !s.opts.NoVisibilityTimeout {
			try(s.extend(limit, l, modeUnstarted, left))
		}
		try(s.releaseStrays(limit, l, s.pool.heldIDs(l)))
	}
	try(s.reap(limit, 0, s.consumer))
	if limit.Err() != nil && failed != nil {
		failed = context.DeadlineExceeded
	}
	if failed != nil {
		return fmt.Errorf("xstreamq: queue %q, group %q: leaving in good order failed; what this worker still holds comes back when "+
			"its lease runs out: %w", s.queue, s.group, failed)
	}
	return nil
}

// wait waits for a group of goroutines, until ctx ends.
func wait(ctx context.Context, wg *sync.WaitGroup) {
	done := make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
