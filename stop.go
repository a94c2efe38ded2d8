package xstreamq

import (
	"cmp"
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

	// Each phase has its share of the grace, so that one that fails leaves time for the next; nothing is sent after the last.
	grace := s.client.cfg.CancelGrace
	reading, cancel := graceAfter(ctx, grace/4)
	defer cancel()
	handling, cancel := graceAfter(ctx, grace*2/3)
	defer cancel()
	writing, cancel := graceAfter(ctx, grace*5/6)
	defer cancel()
	limit, cancel := graceAfter(ctx, grace*19/20)
	defer cancel()
	defer context.AfterFunc(limit, s.cutSettle)()
	defer context.AfterFunc(ctx, func() { s.cutWork(ErrDraining) })() // also while Redis holds up what follows

	close(s.draining)
	s.pool.close()
	s.haltReaders(reading)
	s.giveBackUnstarted(writing)
	s.awaitHandlers(handling)
	err := s.writeOut(writing)

	left := s.pool.stillRunning()
	if len(left) == 0 {
		wait(limit, &s.workers) // the last of them may be writing their outcomes
	}
	err = errors.Join(err, s.leaveBehind(limit))
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

// giveBackUnstarted gives back what no handler has begun. What cannot be written now is parked, and counted by writeOut.
func (s *subscription) giveBackUnstarted(ctx context.Context) {
	_ = s.giveBack(ctx, s.pool.unstarted(time.Now().Add(time.Hour)))
}

// awaitHandlers waits for the handlers. The end of Stop's context cancels them, which comes before the end of this one.
func (s *subscription) awaitHandlers(ctx context.Context) {
	select {
	case <-s.pool.whenIdle():
	case <-ctx.Done():
	}
}

// refusals is how often Stop tries again what Redis refuses, such as a key of the wrong type, and at the very end also what a
// connection broke off.
const refusals = 5

// writeOut writes every outcome there is, and stops the loops.
func (s *subscription) writeOut(limit context.Context) error {
	for _, l := range s.lanes {
		l.acks.Close()
	}
	_ = s.settler.Stop(limit) // its end is not what matters: what is left is counted below
	_ = s.settleAll(limit)    // while leases are still renewed
	for _, l := range s.loops {
		l.Halt()
	}
	for _, l := range s.loops {
		_ = l.Wait(limit)
	}
	failed := s.settleAll(limit) // what a loop could not finish
	if n := s.unwritten.len(); n > 0 {
		return fmt.Errorf("xstreamq: queue %q, group %q: %d outcomes could not be written; their messages come again: %w",
			s.queue, s.group, n, cmp.Or(failed, context.DeadlineExceeded))
	}
	return nil
}

// settleAll writes the outcomes that could not be written before, and returns the last error when some are left.
func (s *subscription) settleAll(limit context.Context) (failed error) {
	for refused := 0; s.unwritten.len() > 0 && limit.Err() == nil && refused < refusals; {
		if _, failed = s.settleParked(limit); failed == nil {
			continue
		}
		if redisCode(failed) != "" {
			refused++
		}
		pause(limit, 20*time.Millisecond)
	}
	return failed
}

// leaveBehind marks what is still held, by handlers that run on or with an outcome that could not be written, so that those
// leases run out as releases; gives back what else this consumer holds; and takes it off the groups if it holds nothing.
func (s *subscription) leaveBehind(limit context.Context) error {
	s.giveBackUnstarted(limit) // what a reader brought that had to be cut
	var failed error
	try := func(leave func() error) {
		err := afterCuts(limit, leave)
		if failed == nil && !groupGone(err) { // what is gone holds nothing
			failed = err
		}
	}
	for _, l := range s.lanes {
		if !s.opts.NoVisibilityTimeout {
			try(func() error { return s.extend(limit, l, modeUnstarted, s.pool.all()) })
		}
		try(func() error { return s.releaseStrays(limit, l, s.pool.heldIDs(l)) })
		try(func() error {
			err := s.client.reap(limit, l, []string{s.consumer})
			if redisCode(err) == "OOM" {
				return nil // a full server before 7.0 deletes no consumer: another worker does, later
			}
			return err
		})
	}
	if limit.Err() != nil && failed != nil {
		failed = context.DeadlineExceeded
	}
	if failed != nil {
		return fmt.Errorf("xstreamq: queue %q, group %q: leaving in good order failed; what this worker still holds comes back when "+
			"its lease runs out: %w", s.queue, s.group, failed)
	}
	return nil
}

// afterCuts does what can be done twice, and tries again a few times when the connection broke: a cut in the last moment is
// not to cost a lease.
func afterCuts(ctx context.Context, do func() error) (err error) {
	for range refusals {
		if err = do(); err == nil || redisCode(err) != "" || ctx.Err() != nil {
			return err
		}
		pause(ctx, 20*time.Millisecond)
	}
	return err
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
