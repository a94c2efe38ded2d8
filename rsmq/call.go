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
	v, err := redisconn.Call(ctx, commandTimeout, run)
	c.heed(err)
	return v, err
}

// share is call for an operation that may share its call with others.
func share[K comparable, T, R any](ctx context.Context, c *Client, with *combiner[K, T, R], key K, item T) (R, error) {
	var none R
	if err := c.unsendable(ctx); err != nil {
		return none, err
	}
	v, err := with.do(ctx, key, item)
	c.heed(err)
	return v, err
}

// heed looks into an error: a server that is a replica means that the news of a failover may have passed a client of Open by.
func (c *Client) heed(err error) {
	if c.conns != nil && redisCode(err) == "READONLY" {
		c.conns.AskAgain(c.redis)
	}
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
