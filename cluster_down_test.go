package xstreamq_test

import (
	"context"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P9: the slot of a queue is taken from its node, and nobody has it, while a worker's reads are blocked: whatever is asked for is CLUSTERDOWN. Once
// a node has the slot again the worker goes on.
func TestSlotOfNobody(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 1)
	client := stopNew(t, c.client(), xstreamq.Config{})
	q := stopQueue(t, client, "q")
	handled := make(chan string, 10)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		handled <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, client)
	clusterAllBlocked(t, c, 2)
	slot, node, _ := c.slot("{q}")
	node.do("CLUSTER", "DELSLOTS", slot)
	redistest.WaitFor(t, clusterWait, "an error that names the state", func() bool {
		_, err := q.Publish(t.Context(), "while nobody has it")
		return err != nil && c.refused("CLUSTERDOWN") > 20
	})
	node.do("CLUSTER", "ADDSLOTS", slot)
	redistest.WaitFor(t, clusterWait, "a publish", func() bool {
		_, err := q.Publish(t.Context(), "after")
		return err == nil
	})
	began := time.Now()
	if got := stopTake(t, "a message", handled); got != "after" {
		t.Errorf("got %q", got)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it was handled after %v", took)
	}
	redistest.WaitFor(t, clusterWait, "health", func() bool { return client.Healthy(t.Context()) == nil })
}
