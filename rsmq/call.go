package rsmq

import (
	"context"

	"github.com/xstreamq/xstreamq/internal/redisconn"
)

// unsentError is why a call was not sent.
type unsentError struct{ error }

func (e *unsentError) Unwrap() error { return e.error }

// call is redisconn.Call for an operation that is not sent when the client is closed, or ctx has ended.
func call[T any](ctx context.Context, c *Client, run func(context.Context) (T, error)) (T, error) {
	if err := c.unsendable(ctx); err != nil {
		var none T
		return none, err
	}
	return redisconn.Call(ctx, commandTimeout, run)
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
