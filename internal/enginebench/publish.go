package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
)

const publishers = 256

// publish compares single publishes from many goroutines.
func (b *bench) publish(ctx context.Context) ([]measurement, error) {
	c, q, err := b.open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	payload := body()
	var ratios, ours, bare []float64
	for range b.rounds {
		t0, err := b.concurrently(ctx, func() error {
			cmd := b.bare.B().Xadd().Key(stream).Id("*").FieldValue().FieldValue("body", rueidis.BinaryString(payload)).Build()
			return b.bare.Do(ctx, cmd).Error()
		})
		if err != nil {
			return nil, err
		}
		t1, err := b.concurrently(ctx, func() error {
			_, err := q.Publish(ctx, payload)
			return err
		})
		if err != nil {
			return nil, err
		}
		bare, ours = append(bare, b.rate(t0)), append(ours, b.rate(t1))
		ratios = append(ratios, b.rate(t1)/b.rate(t0))
	}
	return []measurement{
		{"publish, bare Do(XADD), 256 goroutines", spread("%.0f/s", bare), "", true},
		{"publish, Publish, 256 goroutines", spread("%.0f/s", ours), "", true},
		{"Publish / bare", spread("%.2f", ratios), ">= 0.85", median(ratios) >= 0.85},
	}, nil
}

// concurrently calls publish n times from many goroutines.
func (b *bench) concurrently(ctx context.Context, publish func() error) (timed, error) {
	if err := b.flush(ctx); err != nil {
		return timed{}, err
	}
	return b.timed(ctx, func() error {
		var wg sync.WaitGroup
		var left atomic.Int64
		left.Store(int64(b.n))
		errs := make([]error, publishers)
		for i := range publishers {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if err := publish(); err != nil {
						errs[i] = err
						return
					}
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	})
}

// batch compares batches of 500.
func (b *bench) batch(ctx context.Context) ([]measurement, error) {
	c, q, err := b.open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	payload := body()
	messages := make([]xstreamq.Outgoing[[]byte], 500)
	for i := range messages {
		messages[i].Body = payload
	}
	var ratios, ours, bare []float64
	for range b.rounds {
		t0, err := b.pages(ctx, func() error { return b.bareBatch(ctx, payload) })
		if err != nil {
			return nil, err
		}
		t1, err := b.pages(ctx, func() error {
			for _, r := range q.PublishBatch(ctx, messages) {
				if r.Err != nil {
					return r.Err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		bare, ours = append(bare, b.rate(t0)), append(ours, b.rate(t1))
		ratios = append(ratios, b.rate(t1)/b.rate(t0))
	}
	return []measurement{
		{"publish, bare DoMulti of 500", spread("%.0f/s", bare), "", true},
		{"publish, PublishBatch of 500", spread("%.0f/s", ours), "", true},
		{"PublishBatch / bare", spread("%.2f", ratios), ">= 0.8", median(ratios) >= 0.8},
	}, nil
}

func (b *bench) bareBatch(ctx context.Context, payload []byte) error {
	cmds := make(rueidis.Commands, 0, 500)
	for range 500 {
		cmds = append(cmds, b.bare.B().Xadd().Key(stream).Id("*").FieldValue().FieldValue("body", rueidis.BinaryString(payload)).Build())
	}
	for _, r := range b.bare.DoMulti(ctx, cmds...) {
		if _, err := r.ToString(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) pages(ctx context.Context, page func() error) (timed, error) {
	if err := b.flush(ctx); err != nil {
		return timed{}, err
	}
	return b.timed(ctx, func() error {
		for done := 0; done < b.n; done += 500 {
			if err := page(); err != nil {
				return err
			}
		}
		return nil
	})
}
