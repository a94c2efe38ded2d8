package xstreamq

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines hands out contexts with a deadline for commands whose caller set none. Calls that begin within the same second
// share one: a timer per publish would cost as much as the publish.
type deadlines struct {
	current atomic.Pointer[sharedDeadline]
}

type sharedDeadline struct {
	ctx  context.Context
	made time.Time
}

const deadlineShare = time.Second

// of returns ctx if it has a deadline, else one that ends between commandTimeout and commandTimeout + 1s from now.
func (b *deadlines) of(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	if ctx.Done() != nil {
		return context.WithTimeout(ctx, commandTimeout)
	}
	return b.shared(), func() {}
}

func (b *deadlines) shared() context.Context {
	now := time.Now()
	cur := b.current.Load()
	if cur != nil && now.Sub(cur.made) < deadlineShare {
		return cur.ctx
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout+deadlineShare)
	context.AfterFunc(ctx, cancel) // nobody may cancel it earlier: others share it
	fresh := &sharedDeadline{ctx, now}
	if !b.current.CompareAndSwap(cur, fresh) {
		return b.current.Load().ctx
	}
	return ctx
}
