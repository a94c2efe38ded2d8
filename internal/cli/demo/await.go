package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// look is the time between two looks at how far it is.
const look = 25 * time.Millisecond

// await looks again and again, showing the progress, until so many percent of the messages of all groups together are handled
// or dead letters; for all of them, until nothing is left over in Redis either. When patience runs out it returns too: the
// check then says what is missing.
func (r *run) await(ctx context.Context, percent int) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		reached, err := r.reached(ctx, percent)
		if err != nil || reached {
			return err
		}
		if time.Now().After(r.deadline) {
			r.progress.Say("gave up waiting after %s", patience)
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (r *run) reached(ctx context.Context, percent int) (bool, error) {
	dead, err := r.deadLetters(ctx)
	if err != nil {
		return false, err
	}
	done, total := r.tally.done()+dead, len(groups)*len(r.ledger.events)
	r.progress.Advance(done, total)
	if done*100 < percent*total {
		return false, nil
	}
	if percent < 100 {
		return true, nil
	}
	for _, g := range groups {
		left, err := readRemains(ctx, r.redis, r.prefix, g.name)
		if err != nil || len(left.unfinished()) > 0 {
			return false, err
		}
	}
	return true, nil
}

// deadLetters is how many there are, in all groups together.
func (r *run) deadLetters(ctx context.Context) (int, error) {
	n := 0
	for _, g := range groups {
		length, err := r.redis.Do(ctx, r.redis.B().Xlen().Key(keys.ForGroup(r.prefix, queueName, g.name).DLQ).Build()).AsInt64()
		if err != nil {
			return 0, fmt.Errorf("count dead letters: %w", err)
		}
		n += int(length)
	}
	return n, nil
}
