package xstreamq

import (
	"context"
	"errors"

	"github.com/redis/rueidis"
)

// Outgoing is one message of a batch: what Publish takes for it.
type Outgoing[T any] struct {
	Body    T
	Options []PublishOption
}

// PublishResult is what became of one message of a batch: its ID, or an Err as Publish returns it.
type PublishResult struct {
	ID  string
	Err error
}

// batchSize and batchBytes bound one pipelined write of PublishBatch.
const (
	batchSize  = 500
	batchBytes = 4 << 20
)

// PublishBatch stores many messages with few round trips, and returns a result for each, in the same order. Messages are
// independent: some may be stored and others not. Those without a delay get ids in the order given. There is no limit to a
// batch: it is written in pages of 500 messages or 4 MiB, each within 5s when the context has no deadline.
func (q *Queue[T]) PublishBatch(ctx context.Context, messages []Outgoing[T]) []PublishResult {
	results := make([]PublishResult, len(messages))
	for done := 0; done < len(messages); {
		done += q.publishPage(ctx, messages[done:], results[done:])
	}
	var errs []error
	stored := 0
	for i := range results {
		if results[i].Err == nil {
			stored++
		} else if len(errs) < 10 {
			errs = append(errs, results[i].Err)
		}
	}
	q.client.observePublished(q.name, stored, errors.Join(errs...))
	return results
}

// publishPage stores as many of the first messages as one write may hold, and returns how many those are.
func (q *Queue[T]) publishPage(ctx context.Context, messages []Outgoing[T], results []PublishResult) (n int) {
	cmds := make(rueidis.Commands, 0, min(len(messages), batchSize))
	direct := make([]int, 0, cap(cmds))
	var later []outgoing
	var laterAt []int
	unsendable := q.client.unsendable(ctx)
	for size := 0; n < len(messages) && n < batchSize && size < batchBytes; n++ {
		m, err := q.prepare(messages[n].Body, messages[n].Options)
		size += len(m.body)
		switch {
		case err != nil:
			results[n].Err = err
		case unsendable != nil:
			results[n].Err = publishError(q.name, unsendable, false)
		case m.delayed():
			later, laterAt = append(later, m), append(laterAt, n)
		default:
			cmds, direct = append(cmds, q.add(m)), append(direct, n)
		}
	}
	ctx, cancel := q.client.bound.of(ctx)
	defer cancel()
	if len(cmds) > 0 {
		for j, r := range q.client.redis.DoMulti(ctx, cmds...) {
			id, err := r.ToString()
			if err != nil {
				q.client.heed(err)
				err = publishError(q.name, err, true)
			}
			results[direct[j]] = PublishResult{ID: id, Err: err}
		}
	}
	q.scheduleAll(ctx, later, laterAt, results)
	return n
}
