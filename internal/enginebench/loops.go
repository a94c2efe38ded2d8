package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
)

const idleFor = 20 * time.Second

// idle counts the commands that clients send for a subscription with nothing to do; the calls that scripts make on the server
// are not commands that anybody sends.
func (b *bench) idle(ctx context.Context) ([]measurement, error) {
	if err := b.flush(ctx); err != nil {
		return nil, err
	}
	c, q, err := b.open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if _, err = q.Subscribe(group, func(context.Context, *xstreamq.Message[[]byte]) error { return nil }, xstreamq.SubscribeOptions{}); err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	before, err := b.sent(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(idleFor):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	after, err := b.sent(ctx)
	if err != nil {
		return nil, err
	}
	rate := float64(after-before) / idleFor.Seconds()
	return []measurement{{"commands of an idle subscription", fmt.Sprintf("%.1f/s", rate), "<= 5/s", rate <= 5}}, nil
}

// sent counts the commands of the engine's kinds that came over a connection so far. PING is left out: it is this program's own
// idle connection that sends it, while the engine's is never quiet for long enough.
func (b *bench) sent(ctx context.Context) (int64, error) {
	info, err := b.bare.Do(ctx, b.bare.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		return 0, err
	}
	var total int64
	for _, cmd := range []string{"xreadgroup", "evalsha", "eval", "hkeys", "client|id", "client|unblock", "zmscore", "xack", "xgroup|create"} {
		calls, _, _ := strings.Cut(strings.TrimPrefix(field(info, "cmdstat_"+cmd), "calls="), ",")
		n, _ := strconv.ParseInt(calls, 10, 64)
		total += n
	}
	return total, nil
}

const expired = 100_000

// reclaim times how long a sweep takes to move leases that have all run out, and looks for calls that block the server.
func (b *bench) reclaim(ctx context.Context) ([]measurement, error) {
	if err := b.abandon(ctx); err != nil {
		return nil, err
	}
	slowlog := b.bare.B().ConfigSet().ParameterValue().ParameterValue("slowlog-log-slower-than", "10000").Build()
	if err := b.bare.Do(ctx, slowlog).Error(); err != nil {
		return nil, err
	}
	if err := b.bare.Do(ctx, b.bare.B().SlowlogReset().Build()).Error(); err != nil {
		return nil, err
	}
	c, q, err := b.open()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	hold := make(chan struct{})
	defer close(hold)
	_, err = q.Subscribe(group, func(ctx context.Context, _ *xstreamq.Message[[]byte]) error {
		select {
		case <-hold:
		case <-ctx.Done():
		}
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 1, Prefetch: -1, VisibilityTimeout: time.Second})
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	if err := b.awaitMoved(ctx); err != nil {
		return nil, err
	}
	took := time.Since(start)
	slow, err := b.bare.Do(ctx, b.bare.B().SlowlogLen().Build()).AsInt64()
	return []measurement{
		{"100,000 expired leases moved in", took.Round(10 * time.Millisecond).String(), "<= 5s", took <= 5*time.Second},
		{"server calls over 10 ms meanwhile", strconv.FormatInt(slow, 10), "0", slow == 0},
	}, err
}

// abandon leaves messages pending under a consumer whose leases of a millisecond have run out.
func (b *bench) abandon(ctx context.Context) error {
	small := *b
	small.n = expired
	if err := small.preload(ctx); err != nil {
		return err
	}
	for done := 0; done < expired; done += 1000 {
		err := b.bare.Do(ctx, b.bare.B().Xreadgroup().Group(group, "gone~1").Count(1000).Streams().Key(stream).Id(">").Build()).Error()
		if err != nil && !rueidis.IsRedisNil(err) {
			return err
		}
	}
	return nil
}

func (b *bench) awaitMoved(ctx context.Context) error {
	for {
		rows, err := b.bare.Do(ctx, b.bare.B().Xpending().Key(stream).Group(group).Start("-").End("+").Count(1).Consumer("gone~1").Build()).ToArray()
		if err != nil || len(rows) == 0 {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
