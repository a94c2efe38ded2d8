package xstreamq_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
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
	f := failover{
		faultRig: r.faultRig, master: r.master, limit: limit, waited: r.loadWaited,
		fail: func() {
			r.patience(sentinelAlert)
			fail(r)
		},
		calm: func() {
			r.sentinels[0].Resume()
			r.patience(sentinelCalm)
		},
	}
	f.run(t)
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
func (r *faultRig) loadWaited() *faultLoad {
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
