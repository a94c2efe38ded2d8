package xstreamq_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Delays: each single message comes when it is due: none early, and none so late that not even a busy machine explains it.
func TestEachDelayedMessageComesWhenItIsDue(t *testing.T) {
	t.Parallel()
	const messages, slack = 50, 2 * time.Second
	r := newForeignRig(t, xstreamq.Config{})
	got := make(chan xstreamq.Delivery, messages)
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		got <- m.Delivery
		return nil
	}, xstreamq.SubscribeOptions{VisibilityTimeout: time.Second})
	r.start()
	// From elsewhere, after a look that found nothing: the worker does not know what is to come.
	r.waitRounds("promoter", 1)
	publisher := foreignQueue(t, open(t, xstreamq.Config{KeyPrefix: r.prefix}), "q", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	waiting := map[string]bool{}
	for range messages {
		id, err := publisher.Publish(t.Context(), []byte("later"), xstreamq.WithDelay(rand.N(4*time.Second)+1))
		if err != nil {
			t.Fatal(err)
		}
		waiting[id] = true
	}
	for range messages {
		d := foreignAwait(t, got)
		if !waiting[d.OriginalID] {
			t.Errorf("%s came twice, or was never published", d.OriginalID)
		}
		delete(waiting, d.OriginalID)
		// Redis says when it was moved to where it is read, and what time it is now.
		due := dueTime(t, d.OriginalID)
		if early := due.Sub(idTime(t, d.ID)); early > 0 {
			t.Errorf("%s came %v early", d.OriginalID, early)
		}
		if late := r.serverNow().Sub(due); late > slack {
			t.Errorf("%s came %v late", d.OriginalID, late)
		}
	}
}
