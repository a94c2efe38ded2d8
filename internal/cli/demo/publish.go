package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
)

// foreign stands for the event of the entry that another producer wrote.
const foreign = "foreign"

// ledger is what was published: by id, the event, which decides what must become of it.
type ledger struct {
	events    map[string]string
	delayedID string
	delayedAt time.Time
}

// publish stores every payload, one more with a delay, and an entry that is no webhook.
func (r *run) publish(ctx context.Context, events []webhook) error {
	queue, err := xstreamq.NewQueue[webhook](r.publisher, queueName)
	if err != nil {
		return err
	}
	r.ledger.events = make(map[string]string, len(events)+2)
	batch := make([]xstreamq.Outgoing[webhook], len(events))
	for i, e := range events {
		batch[i] = xstreamq.Outgoing[webhook]{Body: e, Options: []xstreamq.PublishOption{xstreamq.WithHeader("X-GitHub-Event", e.Event)}}
	}
	began := time.Now()
	for i, result := range queue.PublishBatch(ctx, batch) {
		if result.Err != nil {
			return fmt.Errorf("payload %d: %w", i+1, result.Err)
		}
		r.ledger.events[result.ID] = events[i].Event
	}
	r.progress.Say("published %d webhook payloads in %s", len(events), time.Since(began).Round(time.Millisecond))

	ping := webhook{Event: "ping", Payload: []byte(`{"zen":"Anything added dilutes everything else."}`)}
	r.ledger.delayedAt = time.Now()
	if r.ledger.delayedID, err = queue.Publish(ctx, ping, xstreamq.WithDelay(delay)); err != nil {
		return err
	}
	r.ledger.events[r.ledger.delayedID] = ping.Event
	r.progress.Say("published one more, to be delivered in %s", delay)

	key := keys.ForQueue(r.prefix, queueName).Queue
	id, err := r.redis.Do(ctx, r.redis.B().Xadd().Key(key).Id("*").FieldValue().FieldValue("body", "not a webhook").Build()).ToString()
	if err != nil {
		return fmt.Errorf("add the foreign entry: %w", err)
	}
	r.ledger.events[id] = foreign
	r.progress.Say("added an entry of another producer that no handler can decode")
	return nil
}
