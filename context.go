package xstreamq

import (
	"context"
	"sync"
	"time"
)

// handlerContext is a handler's context. The real one is made when somebody looks at it: most handlers of small messages
// never do, and three allocations per message are saved.
type handlerContext struct {
	parent  context.Context
	timeout time.Duration // from now; 0 = none

	mu     sync.Mutex
	start  time.Time
	real   context.Context
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
	cause  error // why it ended, when that came before real
	over   bool
}

func (c *handlerContext) init() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.real != nil {
		return c.real
	}
	c.real, c.cancel = context.WithCancelCause(c.parent)
	if c.timeout > 0 {
		c.real, c.stop = context.WithDeadlineCause(c.real, c.start.Add(c.timeout), ErrHandlerTimeout)
	}
	if c.over {
		c.end()
	}
	return c.real
}

// Deadline, Done, Err and Value implement context.Context.
func (c *handlerContext) Deadline() (time.Time, bool) { return c.init().Deadline() }
func (c *handlerContext) Done() <-chan struct{}       { return c.init().Done() }
func (c *handlerContext) Err() error                  { return c.init().Err() }
func (c *handlerContext) Value(key any) any           { return c.init().Value(key) }

// finish ends the context with a cause; only the first one counts.
func (c *handlerContext) finish(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.cause = true, cause
	if c.real != nil {
		c.end()
	}
}

func (c *handlerContext) end() {
	c.cancel(c.cause)
	if c.stop != nil {
		c.stop()
	}
}

// ended returns why the context ended while the handler ran, or nil.
func (c *handlerContext) ended(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return c.cause
	}
	if c.parent.Err() != nil {
		return context.Cause(c.parent)
	}
	if c.timeout > 0 && now.Sub(c.start) >= c.timeout {
		return ErrHandlerTimeout
	}
	return nil
}

type drainingKey struct{}

// Draining returns a channel that is closed when Stop, or Unsubscribe, begins, for handlers that can end early and give their
// message back with Release. ctx is the handler's; with any other the channel is nil and never closes.
func Draining(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(drainingKey{}).(<-chan struct{})
	return c
}
