package xstreamq_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1, P5: all leases of running handlers look a day old at once, as after a step of the clock that no sweeper could notice, and some moments later
// they look new. At most they run twice: none is lost, dead, or in two places.
func TestLeasesThatLookADayOld(t *testing.T) {
	t.Parallel()
	r := newFaultRig(t, redistest.Start(t, redistest.Options{}))
	release := make(chan struct{})
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: time.Second, Concurrency: 30, Backoff: faultQuick}
	handle := func(ctx context.Context, _ *xstreamq.Message[string]) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	a, q := r.worker(opts, handle)
	b, _ := r.worker(opts, handle)
	var bodies []string
	for i := range 20 {
		bodies = append(bodies, fmt.Sprintf("m-%d", i))
	}
	r.publish(q, bodies...)
	redistest.WaitFor(t, faultPatience, "handlers", func() bool { return r.runs.active() == len(bodies) })
	age := func(idle string) {
		reply := r.do("XPENDING", r.keys.Queue, faultGroup, "-", "+", "100")
		rows, _ := reply.ToArray()
		for i := range rows {
			row, _ := rows[i].ToArray()
			id, _ := row[0].ToString()
			owner, _ := row[1].ToString()
			r.do("XCLAIM", r.keys.Queue, faultGroup, owner, "0", id, "IDLE", idle, "JUSTID")
		}
	}
	age("86400000")
	r.wait(time.Second)
	age("0")
	close(release)
	r.handled(bodies)
	if dead := r.drained(); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	twice := 0
	for body, run := range r.runs.all() {
		if run.begun > 1 {
			twice++
		}
		if run.begun > 2 || run.lost > 1 {
			t.Errorf("%s: %+v", body, run)
		}
	}
	t.Logf("%d of %d ran twice", twice, len(bodies))
	r.healthy(a)
	r.healthy(b)
}
