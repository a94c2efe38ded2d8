package xstreamq_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// resumeWithin is how long after the promotion of a replica its first message may wait to be handled, when nothing else keeps the
// machine busy; resumeSlack is what else may.
const (
	resumeWithin = 5 * time.Second
	resumeSlack  = 5 * time.Second
)

// P1, P5, P9: three sentinels replace the master while messages are published and handled. Consuming goes on within seconds of the
// promotion; whatever the new master has is handled and in no second place; what only the old one had is lost by Redis, and named.
// What a replica had confirmed is never lost.
func TestSentinelFailoverUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: failovers take half a minute, and -short was asked for")
	}
	t.Parallel()
	for name, fail := range map[string]func(r *sentinelRig){
		"shutdown": func(r *sentinelRig) { r.master.Stop() },
		"killed":   func(r *sentinelRig) { r.master.Kill() },
		"stopped":  func(r *sentinelRig) { r.master.Pause() },
		"demoted":  func(r *sentinelRig) { r.failover() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testFailover(t, resumeWithin, fail)
		})
	}
	// Nobody tells the client: it has to find out that its sentinel says nothing any more, and that it does not answer either.
	t.Run("stopped with its sentinel", func(t *testing.T) {
		t.Parallel()
		testFailover(t, faultPatience, func(r *sentinelRig) {
			r.master.Pause()
			r.sentinels[0].Pause()
		})
	})
}

func testFailover(t *testing.T, limit time.Duration, fail func(r *sentinelRig)) {
	t.Helper()
	r := newSentinelRig(t)
	r.config = func(cfg *xstreamq.Config) { cfg.Retain = -1 }
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 10 * time.Second, Backoff: faultQuick}
	a, q := r.worker(opts, faultFlaky)
	b, _ := r.worker(opts, faultFlaky)
	load := r.load(q, 4)
	waited := r.loadWaited()
	redistest.WaitFor(t, faultPatience, "progress", func() bool { return r.runs.succeeded() >= 500 })

	r.patience(sentinelAlert)
	fail(r)
	promoted := r.promoted()
	r.do("XADD", r.keys.Queue, "*", "body", `"first"`)
	r.handled([]string{"first"})
	resumed := time.Since(promoted)
	t.Logf("handled again %v after the promotion", resumed.Round(time.Millisecond))
	if resumed > limit+resumeSlack {
		t.Errorf("it took %v after the promotion until a message was handled, want at most %v", resumed, limit)
	}
	r.sentinels[0].Resume()
	r.patience(sentinelCalm)
	before := r.runs.succeeded()
	redistest.WaitFor(t, faultPatience, "progress after the failover", func() bool { return r.runs.succeeded() >= before+500 })

	// The old master comes back, as what the sentinels make of it.
	if !r.master.Alive() {
		if err := r.master.Restart(); err != nil {
			return
		}
	}
	r.master.Resume()
	old := newFaultRig(t, r.master)
	redistest.WaitFor(t, faultPatience, "the old master to be a replica", func() bool { return serverRole(old) == "slave" })
	before = r.runs.succeeded()
	redistest.WaitFor(t, faultPatience, "progress with both servers", func() bool { return r.runs.succeeded() >= before+500 })

	stored, sure := load.end(), waited.end()
	dead := r.drained()
	byRedis, byEngine := r.lostBy(load.ids)
	t.Logf("%d messages acknowledged, %d of them lost by Redis: %v", len(stored), len(byRedis), byRedis)
	t.Logf("%d messages that the replica had confirmed", len(sure))
	if len(byEngine) > 0 {
		t.Errorf("%d messages are in the queue, and were neither handled nor are they anywhere else: %v", len(byEngine), byEngine)
	}
	byRedis, byEngine = r.lostBy(waited.ids)
	if len(byRedis)+len(byEngine) > 0 {
		t.Errorf("lost although the replica had them: %v %v", byRedis, byEngine)
	}
	if twice := r.places().twice(); len(twice) > 0 {
		t.Errorf("in two places: %v", twice)
	}
	r.unharmed(dead)
	for _, c := range []*xstreamq.Client{a, b} {
		r.healthy(c)
		if took, err := stopWithin(c, faultPatience); err != nil || took > 4*time.Second { // a blocked read takes 5 s
			t.Errorf("Stop: %v after %v", err, took)
		}
	}
}

// unharmed fails the test when a message of a load died, or a lease was lost: no worker was.
func (r *faultRig) unharmed(dead map[string]faultDead) {
	r.t.Helper()
	if len(dead) > 0 {
		r.t.Errorf("dead letters: %v", dead)
	}
	for body, run := range r.runs.all() {
		if run.lost > 0 {
			r.t.Errorf("%s lost its lease, and no worker died: %+v", body, run)
		}
	}
}

// loadWaited publishes without the engine, one message after the other. It counts as stored what the replica confirmed.
func (r *sentinelRig) loadWaited() *faultLoad {
	l := &faultLoad{quit: make(chan struct{}), ids: map[string]string{}}
	rc := redistest.Dial(r.t, r.url)
	l.wg.Go(func() {
		for n := 1; ; n++ {
			body := fmt.Sprintf("waited-%d", n)
			if id, ok := serverWaited(context.Background(), rc, r.keys, body); ok {
				l.mu.Lock()
				l.stored = append(l.stored, body)
				l.ids[body] = id
				l.mu.Unlock()
			}
			select {
			case <-l.quit:
				return
			case <-time.After(faultPace):
			}
		}
	})
	r.t.Cleanup(func() { l.end() })
	return l
}
