package xstreamq_test

import (
	"context"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P3: a worker vanished that had a short lease, and the one that sweeps is late every time, as on a machine that is always too
// busy: it takes the message over all the same.
func TestLateSweeperTakesOverInTheEnd(t *testing.T) {
	t.Parallel()
	rig := newLeaseRig(t)
	rig.publish("a")
	rig.ask("XGROUP", "CREATE", rig.keys.Queue, "g", "0")
	rig.ask("XREADGROUP", "GROUP", "g", "gone~300", "STREAMS", rig.keys.Queue, ">")
	proxy := redistest.NewProxy(t, rig.url)
	proxy.Delay(400 * time.Millisecond) // more than a third of the lease that ran out
	rig.url = proxy.URL()
	handled := make(chan int, 1)
	rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{VisibilityTimeout: 5 * time.Second}, func(_ context.Context, m *xstreamq.Message[string]) error {
		handled <- m.LostLeases
		return nil
	})
	if lost := leaseTake(t, handled, "the message"); lost != 1 {
		t.Errorf("it has lost %d leases", lost)
	}
}
