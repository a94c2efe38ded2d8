package rsmq

import (
	"context"
)

// unsentError is why a call was not sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// call makes one call to Redis and returns by the end of ctx, or within 5s when it has no deadline: also while the call waits for
// a dial that another one began, which does not notice the end of its own context. run may still run then.
func call[T any](ctx context.Context, c *Client, run func(context.Context) (T, error)) (T, error) {
	var none T
	switch {
	case c.closed.Err() != nil:
		return none, &unsentError{ErrClosed}
	case ctx.Err() != nil:
		return none, &unsentError{context.Cause(ctx)}
	}
	ctx, cancel := bounded(ctx)
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		defer cancel()
		v, err := run(ctx)
		answered <- answer{v, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		// Both may have come.
		select {
		case a := <-answered:
			return a.value, a.err
		default:
			return none, context.Cause(ctx)
		}
	}
}

// bounded gives a context without a deadline one.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, commandTimeout)
}
