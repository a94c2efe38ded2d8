package redisconn

import (
	"context"
	"fmt"
	"time"
)

// answerGrace is how long the answer to a change is awaited when its caller was told to stop meanwhile.
const answerGrace = time.Second

// Change is Call for what changes something and answers what. When ctx is cancelled meanwhile, the change is under way all the same, so
// its answer is awaited for up to a second more, to say what was done. A deadline is kept, and after the end of ctx nothing is begun.
func Change[T any](ctx context.Context, limit time.Duration, run func(context.Context) (T, error)) (T, error) {
	if ctx.Err() != nil {
		var none T
		return none, fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	if deadline, ok := ctx.Deadline(); ok {
		var release context.CancelFunc
		longer, release = context.WithDeadline(longer, deadline)
		defer release()
	}
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(answerGrace, func() { cancel(context.Cause(ctx)) })
	})()
	return Call(longer, limit, run)
}
