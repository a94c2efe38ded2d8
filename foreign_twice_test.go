package xstreamq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1: two entries of a stranger that are the same in everything, a forged oid included, are two messages, also while both wait for
// their next delivery, however they came to wait.
func TestSameForeignEntryTwiceIsTwoMessages(t *testing.T) {
	t.Parallel()
	forged := []string{"*", "body", "b", "oid", "d1-ff"}
	fresh := func(r *foreignRig) {
		for range 2 {
			r.do("XADD", r.key(""), forged...)
		}
	}
	for _, c := range []struct {
		name    string
		add     func(r *foreignRig)
		verdict error // of the first run of each
		runs    int32 // in all
	}{
		{"failed", fresh, errors.New("no"), 4},
		{"released", fresh, xstreamq.Release(errors.New("not now")), 4},
		{"lost", func(r *foreignRig) {
			for range 2 {
				r.do("XADD", r.key(".g.retry"), append(forged, "lc", "1")...) // the second loss is the one that waits
			}
			r.do("XGROUP CREATE", r.key(".g.retry"), "g-retry", "0")
			cmd := r.redis.B().Xreadgroup().Group("g-retry", "vanished~100").Streams().Key(r.key(".g.retry")).Id(">").Build()
			if err := r.redis.Do(context.Background(), cmd).Error(); err != nil {
				r.t.Fatal(err)
			}
		}, nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newForeignRig(t, xstreamq.Config{})
			c.add(r)
			var runs atomic.Int32
			r.subscribe("g", func(context.Context, *xstreamq.Message[[]byte]) error {
				if runs.Add(1) <= 2 {
					return c.verdict
				}
				return nil
			}, xstreamq.SubscribeOptions{VisibilityTimeout: 2 * time.Second, Backoff: xstreamq.Backoff{Initial: time.Hour}})
			r.start()
			redistest.WaitFor(t, foreignWait, "both to wait", func() bool { return r.len(".g.delayed") == 2 })
			members, err := r.do("ZRANGE", r.key(".g.delayed"), "0", "-1").AsStrSlice()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range members {
				r.do("ZADD", r.key(".g.delayed"), "0", m) // it is due now
			}
			r.waitEnded("g")
			r.stop()
			if n := runs.Load(); n != c.runs {
				t.Errorf("%d runs, want %d", n, c.runs)
			}
			if n := r.len(".g.dlq"); n != 0 {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

// P1, P9: a forged id makes no two messages one, also when the queue's group was lost while the first of them is being retried.
func TestForgedIdIsNoGhostOfARetry(t *testing.T) {
	t.Parallel()
	rig := newForeignRig(t, xstreamq.Config{CompactEvery: -1}) // the entry stays in the queue
	hold := make(chan struct{})
	begun := make(chan string, 10)
	rig.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		if string(m.Raw) == "one" && m.Retries == 0 {
			return errors.New("once")
		}
		begun <- string(m.Raw)
		if m.Retries > 0 {
			<-hold
		}
		return nil
	}, xstreamq.SubscribeOptions{VisibilityTimeout: 20 * time.Second, Backoff: xstreamq.Backoff{Initial: time.Millisecond}})
	rig.start()
	rig.add("body", "one", "oid", "d1-ff")
	if got := foreignAwait(t, begun); got != "one" {
		t.Fatalf("%q began first", got)
	}
	rig.do("XGROUP DESTROY", rig.key(""), "g")
	rig.add("body", "two", "oid", "d1-ff")
	for foreignAwait(t, begun) != "two" { // the first one may come again
	}
	close(hold)
	rig.stop()
}
