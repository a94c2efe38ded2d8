package demo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

const (
	// lease is short, so that the messages of a dead worker come back while one watches.
	lease = 1500 * time.Millisecond
	// drainTime is how long a worker may take to stop.
	drainTime = 5 * time.Second
	// perByte is how long a handler works on each byte of a payload: 40 ms on average.
	perByte = 4 * time.Microsecond
)

// worker is one client, subscribed for every group.
type worker struct {
	name   string
	client *xstreamq.Client
}

// startWorker starts a worker in this process.
func (r *run) startWorker(ctx context.Context, name string) error {
	client, err := xstreamq.Open(r.url, xstreamq.Config{
		KeyPrefix:    r.prefix,
		Logger:       r.logger,
		Observer:     r.tally.observer(),
		ConsumerName: name,
		DrainTimeout: drainTime,
	})
	if err != nil {
		return err
	}
	r.workers = append(r.workers, &worker{name, client})
	queue, err := xstreamq.NewQueue[webhook](client, queueName)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if _, err := queue.Subscribe(g.name, r.handler(g), subscribeOptions(4, 12)); err != nil {
			return err
		}
	}
	if err := client.Start(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func subscribeOptions(concurrency, prefetch int) xstreamq.SubscribeOptions {
	return xstreamq.SubscribeOptions{
		Concurrency:       concurrency,
		Prefetch:          prefetch,
		VisibilityTimeout: lease,
		MaxRetries:        maxRetries,
		Backoff:           xstreamq.Backoff{Initial: 100 * time.Millisecond, Max: 400 * time.Millisecond},
	}
}

// handler works for a while, as long as the payload is large, and fails as its group does.
func (r *run) handler(g group) xstreamq.Handler[webhook] {
	return func(ctx context.Context, m *xstreamq.Message[webhook]) error {
		work := time.NewTimer(time.Duration(len(m.Raw)) * perByte)
		defer work.Stop()
		select {
		case <-work.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := g.fail(m.Body.Event, m.Retries); err != nil {
			return err
		}
		r.tally.handled(g.name, m.OriginalID)
		return nil
	}
}

// stop drains a worker: it returns when its handlers are done.
func (w *worker) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, drainTime)
	defer cancel()
	if err := w.client.Stop(ctx); err != nil {
		return fmt.Errorf("drain %s: %w", w.name, err)
	}
	return w.client.Close()
}

// stopAll drains workers side by side; those that are stopped already do not mind.
func stopAll(ctx context.Context, workers []*worker) error {
	errs := make([]error, len(workers))
	var wg sync.WaitGroup
	for i, w := range workers {
		wg.Go(func() { errs[i] = w.stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
