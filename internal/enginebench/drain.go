package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq"
)

// drain compares how fast one process empties a full queue.
func (b *bench) drain(ctx context.Context) ([]measurement, error) {
	var ratios, cpu, ours, bare, allocs []float64
	for range b.rounds {
		t0, err := b.drainBare(ctx)
		if err != nil {
			return nil, err
		}
		t1, err := b.drainEngine(ctx)
		if err != nil {
			return nil, err
		}
		bare = append(bare, b.rate(t0))
		ours = append(ours, b.rate(t1))
		ratios = append(ratios, b.rate(t1)/b.rate(t0))
		cpu = append(cpu, t1.redis.Seconds()/t0.redis.Seconds())
		allocs = append(allocs, float64(t1.allocs)/float64(b.n))
	}
	rss, err := residentMiB()
	if err != nil {
		return nil, err
	}
	return []measurement{
		{"drain, bare rueidis loop", spread("%.0f/s", bare), "", true},
		{"drain, one process, Concurrency 64, Prefetch 512", spread("%.0f/s", ours), "", true},
		{"drain / bare", spread("%.2f", ratios), ">= 0.75", median(ratios) >= 0.75},
		{"Redis CPU per drained message / bare", spread("%.2f", cpu), "<= 1.3", median(cpu) <= 1.3},
		{"allocations per handled message", spread("%.2f", allocs), "<= 6", median(allocs) <= 6},
		{"resident memory of this process", fmt.Sprintf("%.0f MiB", rss), "< 40 MiB", rss < 40},
	}, nil
}

// drainBare reads 500 at a time and acknowledges each batch.
func (b *bench) drainBare(ctx context.Context) (timed, error) {
	if err := b.preload(ctx); err != nil {
		return timed{}, err
	}
	return b.timed(ctx, func() error {
		c, release := b.bare.Dedicate()
		defer release()
		for done := 0; done < b.n; {
			reply, err := c.Do(ctx, c.B().Xreadgroup().Group(group, "bare").Count(500).Block(1000).Streams().Key(stream).Id(">").Build()).AsXReadSlices()
			if err != nil {
				return err
			}
			entries := reply[stream]
			ids := make([]string, len(entries))
			for i := range entries {
				ids[i] = entries[i].ID
			}
			if err := c.Do(ctx, c.B().Xack().Key(stream).Group(group).Id(ids...).Build()).Error(); err != nil {
				return err
			}
			done += len(ids)
		}
		return nil
	})
}

// drainEngine handles everything with a handler that does nothing, up to the last acknowledgement.
func (b *bench) drainEngine(ctx context.Context) (timed, error) {
	if err := b.preload(ctx); err != nil {
		return timed{}, err
	}
	c, err := xstreamq.Open(b.url, xstreamq.Config{})
	if err != nil {
		return timed{}, err
	}
	defer c.Close()
	q, err := xstreamq.NewQueue(c, queue, xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	if err != nil {
		return timed{}, err
	}
	var handled atomic.Int64
	all := make(chan struct{})
	_, err = q.Subscribe(group, func(context.Context, *xstreamq.Message[[]byte]) error {
		if handled.Add(1) == int64(b.n) {
			close(all)
		}
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 64, Prefetch: 512})
	if err != nil {
		return timed{}, err
	}
	return b.timed(ctx, func() error {
		if err := c.Start(ctx); err != nil {
			return err
		}
		select {
		case <-all:
		case <-ctx.Done():
			return ctx.Err()
		}
		return b.awaitAcked(ctx)
	})
}

func (b *bench) awaitAcked(ctx context.Context) error {
	for {
		sum, err := b.bare.Do(ctx, b.bare.B().Xpending().Key(stream).Group(group).Build()).ToArray()
		if err != nil {
			return err
		}
		if n, err := sum[0].AsInt64(); err != nil || n == 0 {
			return err
		}
		select {
		case <-time.After(200 * time.Microsecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// residentMiB is the memory of this process that is in RAM.
func residentMiB() (float64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	kb, err := strconv.ParseFloat(strings.TrimSuffix(field(strings.ReplaceAll(string(status), "\t", ""), "VmRSS"), " kB"), 64)
	return kb / 1024, err
}
