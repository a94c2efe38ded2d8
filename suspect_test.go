package xstreamq_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1, P5: messages that lost several leases run one at a time, and however many of them wait, and however long the one that runs
// takes, the others are handled meanwhile.
func TestSuspectsKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	const suspects, others = 30, 20
	rig := newLeaseRig(t)
	for i := range suspects {
		rig.ask("XADD", rig.keys.Retry, "*", "body", "suspect", "oid", fmt.Sprintf("%d-1", i+1), "lc", "2")
	}
	var runs leaseRuns
	var running atomic.Int32
	var together atomic.Bool
	begun, release := make(chan struct{}, suspects), make(chan struct{})
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{
		Concurrency: 10, VisibilityTimeout: 10 * leasePatience, // no lease runs out here, and nothing waits for a whole one
	}, func(_ context.Context, m *xstreamq.Message[string]) error {
		if m.LostLeases == 0 {
			runs.add(m)
			return nil
		}
		if running.Add(1) > 1 {
			together.Store(true)
		}
		defer running.Add(-1)
		begun <- struct{}{}
		<-release
		return nil
	})
	letGo := sync.OnceFunc(func() { close(release) })
	t.Cleanup(letGo)
	leaseTake(t, begun, "a suspect")
	rig.publish(leaseBodies("healthy", others)...)
	redistest.WaitFor(t, leasePatience, "every other message", func() bool { return runs.bodies() == others })
	letGo()
	for range suspects - 1 {
		leaseTake(t, begun, "each suspect")
	}
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	if together.Load() {
		t.Error("suspects ran at the same time")
	}
}
