package xstreamq_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// inspectFill stores what a large queue has, a part per call.
var inspectFill = map[string]string{
	"queue":    `for i = ARGV[1] + 1, ARGV[2] do redis.call('XADD', KEYS[1], i .. '-0', 'body', '{"order":' .. i .. ',"sku":"4711","lines":[1,2,3]}', 'h:tenant', 'acme') end`,
	"backoff":  `for i = ARGV[1] + 1, ARGV[2] do redis.call('ZADD', KEYS[1], i, i .. '-0\0' .. '4:body1:a') end`,
	"registry": `for i = ARGV[1] + 1, ARGV[2] do redis.call('HSET', KEYS[1], 'q' .. i .. '/g', '{"max_retries":5,"queue":"a queue with a long name"}') end`,
	"consumer": `for i = ARGV[1] + 1, ARGV[2] do redis.call('XGROUP', 'CREATECONSUMER', KEYS[1], 'g', 'worker-' .. i .. '~30000') end`,
}

func (r *inspectRig) fill(kind, role string, n int) {
	r.t.Helper()
	const step = 20000
	for from := 0; from < n; from += step {
		cmd := r.redis.B().Eval().Script(inspectFill[kind]).Numkeys(1).Key(r.key(role)).Arg(fmt.Sprint(from), fmt.Sprint(min(n, from+step))).Build()
		if err := r.redis.Do(r.ctx, cmd).Error(); err != nil && !rueidis.IsRedisNil(err) {
			r.t.Fatal(err)
		}
	}
}

// No single call takes long with 500,000 entries, 20,000 pending, 10,000 consumers and 10,000 registered groups.
func TestInspectionOfLargeQueues(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	r := newInspectRigAt(t, server.URL(), "")
	meter := newMeter(t, server.URL())
	r.client = stopNew(t, meter, xstreamq.Config{})
	const entries, consumers, held, registered, delivered = 500_000, 10_000, 20_000, 10_000, 400_000
	r.fill("queue", "queue", entries)
	r.fill("backoff", "backoff", 50_000)
	r.fill("registry", "registry", registered)
	r.run("XGROUP CREATE @queue g 0\nXGROUP CREATE @queue all 0\nXGROUP CREATE @retry g-retry 0 MKSTREAM")
	r.fill("consumer", "queue", consumers)
	r.run(fmt.Sprintf("XREADGROUP GROUP g worker-1~30000 COUNT %d STREAMS @queue >", held))
	// Where Redis does not know the lag, and both ends are far.
	r.run(fmt.Sprintf("XGROUP SETID @queue g %d-0", delivered))

	begun := time.Now()
	if lag := r.lag(); lag != entries-delivered {
		t.Errorf("the lag is %d", lag)
	}
	t.Logf("counting %d entries from either end took %v", entries-delivered, time.Since(begun))
	if d, err := r.client.Depth(r.ctx, "q", "all"); err != nil || d.Backlog != entries || d.Length != entries {
		t.Errorf("%+v, %v", d, err)
	}
	if found, err := r.client.Consumers(r.ctx, "q", "g"); err != nil || len(found) != consumers {
		t.Errorf("%d consumers, %v", len(found), err)
	}
	if found, err := r.client.Groups(r.ctx, "q"); err != nil || len(found) != 2 || found[1].Unfinished != "1-0" {
		t.Errorf("groups: %+v, %v", found, err)
	}
	if found, err := r.client.Registered(r.ctx); err != nil || len(found) != registered {
		t.Errorf("%d registered, %v", len(found), err)
	}
	pending := 0
	for m, err := range r.client.Pending(r.ctx, "q", "g") {
		if pending++; err != nil || m.ID != fmt.Sprint(pending)+"-0" {
			t.Fatalf("pending message %d is %+v, %v", pending, m, err)
		}
	}
	if pending != held {
		t.Errorf("%d pending", pending)
	}
	for _, place := range []xstreamq.Place{xstreamq.InQueue, xstreamq.InBackoff} {
		found, err := r.client.Peek(r.ctx, "q", "g", xstreamq.PeekOptions{From: place, Count: 2000})
		if err != nil || len(found) != 2000 {
			t.Errorf("%d in %s, %v", len(found), place, err)
		}
	}
	if d := r.depth(); d.Backlog != entries-delivered || d.Pending != held || d.Backoff != 50_000 {
		t.Errorf("%+v", d)
	}
	meter.check("looking", stalls/2)
}
