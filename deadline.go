package xstreamq

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"
)

// deadlines hands out contexts with a deadline for commands whose caller set none. Calls with the same context within a second
// share one: a timer per publish would cost as much as the publish.
type deadlines struct {
	latest atomic.Pointer[sharedDeadline]
}

type sharedDeadline struct {
	parent context.Context // nil for one that never ends
	ctx    context.Context
	stale  atomic.Bool // a second old
}

const deadlineShare = time.Second

func nothing() {}

// of returns ctx if it has a deadline, else one that ends with it, and between commandTimeout and commandTimeout + 1s from
// now.
func (b *deadlines) of(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, nothing
	}
	if ctx.Done() == nil {
		ctx = nil
	} else if reflect.TypeOf(ctx).Kind() != reflect.Pointer {
		return context.WithTimeout(ctx, commandTimeout) // not safe to compare
	}
	if d := b.latest.Load(); d != nil && d.parent == ctx && !d.stale.Load() {
		return d.ctx, nothing
	}
	return b.share(ctx), nothing
}

// share makes a context that nobody may cancel early: others use it. It ends by its deadline, or with its parent.
func (b *deadlines) share(parent context.Context) context.Context {
	from := parent
	if from == nil {
		from = context.Background()
	}
	ctx, cancel := context.WithTimeout(from, commandTimeout+deadlineShare)
	context.AfterFunc(ctx, cancel)
	d := &sharedDeadline{parent: parent, ctx: ctx}
	time.AfterFunc(deadlineShare, func() { d.stale.Store(true) })
	b.latest.Store(d)
	return ctx
}
