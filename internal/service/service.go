// Package service is the base of every background loop: one step, again and again, until it is stopped.
package service

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"
)

const defaultQuiet = 15 * time.Second

// Waits after a failed step: doubling from the first to the second, with jitter.
const (
	firstWait = 50 * time.Millisecond
	lastWait  = time.Second
)

// Step does one round and says how long to wait before the next one. An error makes the loop back off instead.
type Step func(ctx context.Context) (wait time.Duration, err error)

// Options describe a loop.
type Options struct {
	Name string
	Step Step
	// Timeout bounds one step; 0 = the step bounds itself.
	Timeout time.Duration
	// Quiet is how long the loop may go without progress before it counts as stuck. Default 15s.
	Quiet time.Duration
	// OnError is told of every failed step.
	OnError func(err error)
}

// Loop runs a step until it is stopped. It survives errors and panics of the step.
type Loop struct {
	opts Options
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	cancel  context.CancelFunc
	stopped bool
	status  Status
}

// Status is what a loop says of itself.
type Status struct {
	Name string
	// Running is false before Start and after the loop has ended.
	Running bool
	// Waiting: the loop waits for something that is not its fault, such as a free handler.
	Waiting bool
	// Progress is when a step last succeeded, or the loop started.
	Progress time.Time
	// Tried is when a step last ended, well or not, or the loop started.
	Tried time.Time
	// Fresh: the loop runs, and made progress not longer than Quiet ago. Alive: it runs, and at least tried.
	Fresh, Alive bool
	// Err is the error of the last step; nil when it succeeded.
	Err error
}

// New returns a loop that is not running yet.
func New(opts Options) *Loop {
	if opts.Quiet == 0 {
		opts.Quiet = defaultQuiet
	}
	return &Loop{
		opts:   opts,
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		status: Status{Name: opts.Name},
	}
}

// Start runs the loop in a goroutine, until Halt or the end of ctx. A loop that was halted before does not start; a second Start
// does nothing.
func (l *Loop) Start(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil || l.stopped {
		return
	}
	ctx, l.cancel = context.WithCancel(ctx)
	l.status.Running = true
	l.status.Progress = time.Now()
	l.status.Tried = l.status.Progress
	go l.run(ctx)
}

// Halt tells the loop to end, and does not wait. Safe at any time, and twice.
func (l *Loop) Halt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	if l.cancel != nil {
		l.cancel()
	}
}

// Wait waits until a halted loop has ended, or ctx ends.
func (l *Loop) Wait(ctx context.Context) error {
	l.mu.Lock()
	started := l.cancel != nil
	l.mu.Unlock()
	if !started {
		return nil
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("loop %s still runs: %w", l.opts.Name, context.Cause(ctx))
	}
}

// Stop is Halt and Wait.
func (l *Loop) Stop(ctx context.Context) error {
	l.Halt()
	return l.Wait(ctx)
}

// Wake ends the current wait early.
func (l *Loop) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// SetWaiting says that the loop waits for something that is not its fault, or does so no longer.
func (l *Loop) SetWaiting(waiting bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Waiting = waiting
	l.status.Progress = time.Now()
	l.status.Tried = l.status.Progress
}

// Status returns the loop's state now.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	now := time.Now()
	s.Alive = s.Running && (s.Waiting || now.Sub(s.Tried) <= l.opts.Quiet)
	s.Fresh = s.Alive && (s.Waiting || now.Sub(s.Progress) <= l.opts.Quiet)
	return s
}

func (l *Loop) run(ctx context.Context) {
	defer close(l.done)
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.status.Running = false
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var failed time.Duration
	for ctx.Err() == nil {
		wait, err := l.step(ctx)
		if ctx.Err() != nil {
			return
		}
		l.note(err)
		if err != nil {
			failed = min(max(2*failed, firstWait), lastWait)
			wait = failed
		} else {
			failed = 0
		}
		if wait <= 0 {
			continue
		}
		timer.Reset(jitter(wait))
		select {
		case <-timer.C:
		case <-l.wake:
		case <-ctx.Done():
		}
	}
}

// step runs one step; a panic is its error.
func (l *Loop) step(ctx context.Context) (wait time.Duration, err error) {
	if l.opts.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, l.opts.Timeout)
		defer cancel()
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("loop %s panicked: %v\n%s", l.opts.Name, p, debug.Stack())
		}
	}()
	return l.opts.Step(ctx)
}

// note keeps the result of a step.
func (l *Loop) note(err error) {
	l.mu.Lock()
	l.status.Tried = time.Now()
	l.status.Err = err
	if err == nil {
		l.status.Progress = l.status.Tried
	}
	l.mu.Unlock()
	if err != nil && l.opts.OnError != nil {
		l.opts.OnError(err)
	}
}

// jitter shortens a wait by up to a tenth, so that loops of many processes part and none is ever late.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/10+1)
}
