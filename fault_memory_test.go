package xstreamq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1, P5, P9: when Redis is full of finished entries, acks, retries and dead letters go on, failures stay failures, a worker can
// start, and as soon as the last group has caught up trimming makes room: nobody needs a restart.
func TestFullServer(t *testing.T) {
	t.Parallel()
	rig := newFaultRig(t, redistest.Start(t, redistest.Options{Args: []string{"--maxmemory-policy", "noeviction"}}))
	gate, slow := make(chan struct{}), make(chan struct{})
	openGate, openSlow := sync.OnceFunc(func() { close(gate) }), sync.OnceFunc(func() { close(slow) })
	t.Cleanup(openGate)
	t.Cleanup(openSlow)
	handle := func(ctx context.Context, m *xstreamq.Message[string]) error {
		if strings.HasPrefix(m.Body, "filler") {
			return nil
		}
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if strings.HasPrefix(m.Body, "dead") || strings.HasPrefix(m.Body, "fail") && m.Retries == 0 {
			return errors.New("failed")
		}
		return nil
	}
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 20 * time.Second, Concurrency: 20, MaxRetries: 2, Backoff: faultQuick}
	a, q := rig.worker(opts, handle)
	rig.worker(opts, handle)

	// A second group holds the first entry: nothing can be trimmed.
	behind, other := rig.client()
	if _, err := other.Subscribe("behind", faultGate(slow), xstreamq.SubscribeOptions{Concurrency: 1, Prefetch: 1000}); err != nil {
		t.Fatal(err)
	}
	if err := behind.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var held []string
	for i := range 10 {
		held = append(held, "ok-"+strconv.Itoa(i), "fail-"+strconv.Itoa(i))
	}
	dead := []string{"dead-1", "dead-2"}
	rig.publish(q, append(held, dead...)...)
	redistest.WaitFor(t, faultPatience, "all running", func() bool { return rig.runs.active() == len(held)+len(dead) })
	rig.fill(q, 20000)

	rig.do("CONFIG", "SET", "maxmemory", strconv.Itoa(rig.memory()-1<<20))
	if _, err := q.Publish(t.Context(), "refused"); err == nil || errors.Is(err, xstreamq.ErrPublishUncertain) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("Publish to a full server says %v, want OOM", err)
	}
	if err := a.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("Healthy says %v, want OOM", err)
	}
	openGate()
	rig.handled(held)
	redistest.WaitFor(t, faultPatience, "dead letters", func() bool { return len(rig.places().dead) == len(dead) })
	for id, d := range rig.drained() {
		if d.reason != "failed" || d.rc != "3" || d.lc != "" {
			t.Errorf("dead letter %s: %+v", id, d)
		}
	}
	late, _ := rig.worker(opts, handle)
	if _, err := q.Publish(t.Context(), "refused"); err == nil {
		t.Fatal("there is room again, too early: the test shows nothing")
	}

	openSlow()
	redistest.WaitFor(t, faultPatience, "room", func() bool {
		_, err := q.Publish(t.Context(), "ok-again")
		return err == nil
	})
	rig.handled([]string{"ok-again"})
	rig.healthy(a)
	rig.healthy(late)
	for body, run := range rig.runs.all() {
		want := 0
		switch {
		case strings.HasPrefix(body, "fail"):
			want = 1
		case strings.HasPrefix(body, "dead"):
			want = 2
		}
		if run.lost > 0 || run.retries != want || !strings.HasPrefix(body, "ok-again") && run.begun != 1+want {
			t.Errorf("%s: %+v, want %d failures and no lost lease", body, run, want)
		}
	}
	if n := rig.log.count(); n > 40 {
		t.Errorf("%d lines were logged:\n%s", n, rig.log)
	}
}

// fill publishes messages of 1 KiB and waits until the group has handled them.
func (r *faultRig) fill(q *xstreamq.Queue[string], n int) {
	r.t.Helper()
	batch := make([]xstreamq.Outgoing[string], n)
	bodies := make([]string, n)
	for i := range batch {
		bodies[i] = "filler-" + strconv.Itoa(i) + strings.Repeat(".", 1024)
		batch[i].Body = bodies[i]
	}
	for _, res := range q.PublishBatch(r.t.Context(), batch) {
		if res.Err != nil {
			r.t.Fatal(res.Err)
		}
	}
	r.handled(bodies)
}

func (r *faultRig) memory() int {
	r.t.Helper()
	n, err := strconv.Atoi(r.info("memory", "used_memory"))
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
