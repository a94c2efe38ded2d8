package redisconn

import (
	"context"
	"fmt"
	"time"
)

// Call makes one call to Redis and returns by the end of ctx, or within limit when it has no deadline: also while the call waits for
// a dial that another one began, which does not notice the end of its own context. run may still run then.
func Call[T any](ctx context.Context, limit time.Duration, run func(context.Context) (T, error)) (T, error) {
	ctx, cancel := Bound(ctx, limit)
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
		}
		var none T
		return none, fmt.Errorf("no answer of Redis: %w", context.Cause(ctx))
	}
}

// Bound gives a context without a deadline one.
func Bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}
