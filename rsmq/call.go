package rsmq

import "context"

// unsentError is why a call was not sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// call makes one call to Redis and returns by the end of ctx, or within 5s when it has no deadline: also while the call waits for
// a dial that another one began, which does not notice the end of its own context. run may still run then.
func call[T any](ctx context.Context, c *Client, run func(context.Context) (T, error)) (T, error) {
	var none T
	if err := c.unsendable(ctx); err != nil {
		return none, err
	}
	ctx, cancel := bounded(ctx)
	answered := make(chan outcome[T], 1)
	go func() {
		defer cancel()
		v, err := run(ctx)
		answered <- outcome[T]{v, err}
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

// share is call for an operation that may share its call with others.
func share[K comparable, T, R any](ctx context.Context, c *Client, with *combiner[K, T, R], key K, item T) (R, error) {
	var none R
	if err := c.unsendable(ctx); err != nil {
		return none, err
	}
	return with.do(ctx, key, item)
}

// unsendable is why nothing can be sent, or nil.
func (c *Client) unsendable(ctx context.Context) error {
	switch {
	case c.closed.Err() != nil:
		return &unsentError{ErrClosed}
	case ctx.Err() != nil:
		return &unsentError{context.Cause(ctx)}
	}
	return nil
}

// bounded gives a context without a deadline one.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, commandTimeout)
}
