package peer

import (
	"context"
	"time"

	"github.com/xstreamq/xstreamq"
)

const (
	queue       = "bench"
	group       = "g"
	concurrency = 64 // handlers of one worker process, of every system that has such a setting
	batchSize   = 100

	stopWithin = 10 * time.Second
)

func openXstreamq(url string) (*xstreamq.Client, *xstreamq.Queue[[]byte], error) {
	c, err := xstreamq.Open(url, xstreamq.Config{})
	if err != nil {
		return nil, nil, err
	}
	q, err := xstreamq.NewQueue(c, queue, xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	return c, q, err
}

func xstreamqProducer(_ context.Context, url string, _ int) (store, func(), error) {
	c, q, err := openXstreamq(url)
	if err != nil {
		return nil, nil, err
	}
	put := func(ctx context.Context, bodies [][]byte) error {
		_, err := q.Publish(ctx, bodies[0])
		return err
	}
	return put, func() { _ = c.Close() }, nil
}

func xstreamqBatchProducer(_ context.Context, url string, _ int) (store, func(), error) {
	c, q, err := openXstreamq(url)
	if err != nil {
		return nil, nil, err
	}
	put := func(ctx context.Context, bodies [][]byte) error {
		messages := make([]xstreamq.Outgoing[[]byte], len(bodies))
		for i, body := range bodies {
			messages[i].Body = body
		}
		for _, r := range q.PublishBatch(ctx, messages) {
			if r.Err != nil {
				return r.Err
			}
		}
		return nil
	}
	return put, func() { _ = c.Close() }, nil
}

// xstreamqWorker has a worker with the default of every option but Concurrency, and Prefetch when that is not 0.
func xstreamqWorker(prefetch int) func(context.Context, string, func([]byte)) (func(), error) {
	return func(ctx context.Context, url string, handle func([]byte)) (func(), error) {
		c, q, err := openXstreamq(url)
		if err != nil {
			return nil, err
		}
		sub, err := q.Subscribe(group, func(_ context.Context, m *xstreamq.Message[[]byte]) error {
			handle(m.Body)
			return nil
		}, xstreamq.SubscribeOptions{Concurrency: concurrency, Prefetch: prefetch})
		if err != nil {
			return nil, err
		}
		if err := c.Start(ctx); err != nil {
			return nil, err
		}
		stop := func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
			defer cancel()
			_ = c.Stop(ctx)
			_ = c.Close()
		}
		return stop, sub.Ready(ctx)
	}
}
