package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

// verdict is what a delivery came to. deliver makes it; settle writes it.
type verdict struct {
	outcome Outcome // Acked, Discarded, Skipped, Retried, Released or Dead
	reason  Reason  // of Dead
	spend   bool    // it is a failure
	delay   time.Duration
	err     error
}

// work is one worker: it handles one message after the other.
func (s *subscription) work() {
	call := s.newInvoke()
	var last *delivery
	// A handler that calls runtime.Goexit takes its worker along: another one goes on.
	clean := false
	defer func() {
		if !clean {
			s.workers.Go(s.work)
		}
	}()
	for {
		d := s.pool.next(last)
		if d == nil {
			clean = true
			return
		}
		s.handle(call, d)
		last = d
	}
}

// handle runs the handler of one delivery and settles what comes of it, whatever way the handler ends.
func (s *subscription) handle(call invoke, d *delivery) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			s.crashed(d, fmt.Errorf("handler panicked: %v\n%s", p, debug.Stack()))
			return
		}
		s.crashed(d, fmt.Errorf("handler called runtime.Goexit\n%s", debug.Stack()))
		s.pool.leave()
	}()
	lost, err := s.charge(d)
	if lost || err != nil {
		returned = true
		s.settle(d, verdict{outcome: Released, err: err})
		return
	}
	if d.entry.HasBody {
		err = call(&d.ctx, &d.entry)
	} else {
		err = errNoBody
	}
	returned = true
	s.conclude(d, err)
}

// crashed is conclude for a handler that did not return. Nobody else may ever see why, so it is logged.
func (s *subscription) crashed(d *delivery, err error) {
	s.log.Error("a handler crashed; its message counts as failed", "id", d.entry.Original, "error", err)
	s.conclude(d, err)
}

var errNoBody = errors.New("the entry has no field \"body\"")

// conclude turns what a handler returned into a verdict, and settles it.
func (s *subscription) conclude(d *delivery, err error) {
	now := time.Now()
	if err != nil {
		err = sound(err)
	}
	cause := d.ctx.ended(now)
	d.ctx.finish(context.Canceled)
	v := s.judge(d, err, cause)
	s.observeHandled(d, v, now.Sub(d.ctx.start), err)
	s.settle(d, v)
}

// sound returns an error that can be looked into. A nil pointer in an error is a classic mistake: its methods panic.
func sound(err error) (out error) {
	defer func() {
		if p := recover(); p != nil {
			out = fmt.Errorf("the handler returned a %T whose methods panic: %v", err, p)
		}
	}()
	_ = err.Error()
	var target *undecodableError
	errors.As(err, &target)
	return err
}

// judge is the one place where errors become verdicts. cause is why the handler's context had ended before it returned.
func (s *subscription) judge(d *delivery, err, cause error) verdict {
	if err == nil && cause == nil {
		return verdict{outcome: Acked}
	}
	var (
		undecodable *undecodableError
		dead        *deadLetterError
		discard     *discardError
		release     *releaseError
		after       *retryAfterError
	)
	switch {
	case err == errNoBody: //nolint:errorlint // our own value, never wrapped; a handler cannot have it
		return verdict{outcome: Dead, reason: NoBody}
	case errors.As(err, &undecodable):
		return verdict{outcome: Dead, reason: Undecodable, err: err}
	case errors.As(err, &discard):
		return verdict{outcome: Discarded, err: err}
	case errors.As(err, &dead):
		return verdict{outcome: Dead, reason: Rejected, spend: true, err: err}
	case err != nil && errors.Is(cause, ErrDraining):
		return verdict{outcome: Released, err: err}
	case errors.Is(cause, ErrHandlerTimeout), errors.Is(cause, ErrMaxExtension):
		return s.failure(d, errors.Join(cause, err))
	case err == nil:
		return verdict{outcome: Acked}
	case errors.As(err, &release):
		return verdict{outcome: Released, delay: s.delayAfter(1, err), err: err}
	case errors.As(err, &after):
		v := s.failure(d, err)
		v.delay = min(after.delay, maxDelay)
		return v
	}
	return s.failure(d, err)
}

// failure is a verdict that spends a retry. Whether it was the last one is counted by the script that writes it.
func (s *subscription) failure(d *delivery, err error) verdict {
	return verdict{outcome: Retried, spend: true, delay: s.delayAfter(d.entry.Failures+1, err), err: err}
}

// delayAfter asks the backoff, which may be the user's.
func (s *subscription) delayAfter(attempt int, err error) (delay time.Duration) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("Backoff.Func panicked", "panic", fmt.Sprint(p))
			delay = time.Second
		}
	}()
	return s.opts.Backoff.Delay(attempt, err)
}

// maxErrorText is how much of an error travels with a message, in bytes.
const maxErrorText = 2 << 10

// errorText is a sound error as the envelope carries it: valid UTF-8, bounded.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	s := err.Error()
	return strings.ToValidUTF8(s[:min(len(s), maxErrorText)], "?")
}
