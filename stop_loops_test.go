package xstreamq_test

import (
	"context"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The renewer gives back thousands that waited for too long when Stop comes, which ends it in the middle: what it had not done yet is
// done by Stop.
func TestStopFinishesWhatALoopHadBegun(t *testing.T) {
	t.Parallel()
	const many = 5000
	r := newLeaseRig(t)
	proxy := redistest.NewProxy(t, r.url)
	c := stopConnect(t, "open", proxy.URL(), xstreamq.Config{KeyPrefix: r.prefix})
	q := stopQueue(t, c, "q")
	running, release := make(chan string, 1), make(chan struct{})
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		select {
		case running <- m.Body:
		default: // another one, that began before Stop did
		}
		<-release
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 1, Prefetch: many, VisibilityTimeout: 6 * time.Second})
	stopStart(t, c)
	r.publish(leaseBodies("m", many)...)
	stopTake(t, "the handler", running)
	redistest.WaitFor(t, stopWait, "many to wait", func() bool {
		return c.Health(t.Context()).Subscriptions[0].Waiting >= many/3
	})
	givenBack := func() int64 {
		n, err := r.redis.Do(t.Context(), r.redis.B().Xlen().Key(r.keys.Retry).Build()).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	proxy.Delay(30 * time.Millisecond)
	redistest.WaitFor(t, stopWait, "the first ones to be given back", func() bool { return givenBack() > 0 })
	ended := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		ended <- c.Stop(ctx)
	}()
	close(release)
	redistest.WaitFor(t, stopWait, "what was handled to be acknowledged", func() bool {
		return stopPending(t, r.redis, r.keys.Queue, "g")+givenBack() < many
	})
	proxy.Pass()
	if err := stopTake(t, "the end of Stop", ended); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if left := stopLeased(t, r.redis, r.prefix); left > 0 {
		t.Errorf("%d are pending", left)
	}
}
