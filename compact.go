package xstreamq

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/service"
)

// registerEvery is how often last_seen is refreshed in the registry.
const registerEvery = time.Minute

// newCompactor returns the loop that trims finished entries off the queue.
func (s *subscription) newCompactor() *service.Loop {
	var registered time.Time
	step := func(ctx context.Context) (time.Duration, error) {
		if time.Since(registered) > registerEvery {
			if err := s.register(ctx); err != nil {
				return 0, err
			}
			registered = time.Now()
		}
		return s.compact(ctx)
	}
	return service.New(service.Options{
		Name: "compactor", Step: step, Timeout: 2 * commandTimeout,
		Quiet: min(max(s.client.cfg.CompactEvery, registerEvery), maxDelay) + 15*time.Second, OnError: s.loopError("compactor"),
	})
}

// compact trims one page, and comes back at once while there is more.
func (s *subscription) compact(ctx context.Context) (time.Duration, error) {
	cfg := &s.client.cfg
	if cfg.CompactEvery < 0 || cfg.Retain < 0 {
		return registerEvery, nil
	}
	page, err := s.client.compactPage(ctx, s.queueLane.keys, s.queue)
	if err != nil {
		return 0, err
	}
	if page.missing != "" {
		s.log.Warn("nothing is trimmed: a registered group is missing from the queue", "missing", page.missing)
	}
	if page.more {
		return clock, nil
	}
	return cfg.CompactEvery, nil
}

// CompactResult is what one call of Compact did.
type CompactResult struct {
	// Trimmed is how many entries were removed.
	Trimmed int64
	// Missing is a registered group that is not on the queue's stream: nothing is trimmed until it comes back, or is forgotten.
	// Empty when there is none.
	Missing string
	// NoGroup: the queue has no group at all. Nothing is trimmed: the first one that comes may begin at the beginning.
	NoGroup bool
}

// Compact trims from a queue what every group has finished with, as its workers do by themselves, and never more. It keeps what Config.Retain
// says, and trims nothing when that is negative. Redis trims whole nodes of its stream, so some finished entries stay.
// It goes in pages of 5,000 entries or about 8 MiB, with pauses between them; with an error it returns what it had done by then.
// ErrNoQueue. Without a deadline each call to Redis is given 5s.
func (c *Client) Compact(ctx context.Context, queue string) (CompactResult, error) {
	if err := checkName("queue", queue); err != nil {
		return CompactResult{}, err
	}
	var result CompactResult
	fail := func(err error) (CompactResult, error) { return result, opError("compaction", queue, "", err) }
	k := keys.ForQueue(c.cfg.KeyPrefix, queue)
	for c.cfg.Retain >= 0 {
		page, err := changed(ctx, func(ctx context.Context) (compacted, error) { return c.compactPage(ctx, k, queue) })
		if err != nil {
			return fail(err)
		}
		result.Trimmed += page.trimmed
		result.Missing, result.NoGroup = page.missing, page.noGroup
		if !page.more {
			break
		}
		pause(ctx, clock) // others have their turn
	}
	if result.Trimmed == 0 {
		if err := c.known(ctx, queue, ""); err != nil {
			return fail(err)
		}
	}
	return result, nil
}

// compacted is what one page of a compaction came to.
type compacted struct {
	trimmed int64
	missing string // as CompactResult.Missing
	noGroup bool   // as CompactResult.NoGroup
	more    bool
}

// compactPage trims about as much as one call to Redis should.
func (c *Client) compactPage(ctx context.Context, k keys.Set, queue string) (page compacted, err error) {
	groups, err := c.groupsOf(ctx, k.Registry, queue)
	if err != nil {
		return page, err
	}
	reply, err := runCompact(ctx, c.redis, k, compactArgs{Retain: ceilMillis(c.cfg.Retain), Groups: groups}).ToArray()
	if err != nil {
		return page, keyError(k.Queue, err)
	}
	r := replyReader{reply: reply}
	page.trimmed, page.missing, page.noGroup, page.more = r.int(), r.string(), r.int() == 1, r.int() == 1
	return page, r.err
}

// groupsOf returns the registered groups of a queue.
func (c *Client) groupsOf(ctx context.Context, registry, queue string) ([]string, error) {
	// Not Hkeys: rueidis would retry it, and the loop waits by itself.
	members, err := c.redis.Do(ctx, c.redis.B().Arbitrary("HKEYS").Keys(registry).Build()).AsStrSlice()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, keyError(registry, err)
	}
	prefix := keys.Member(queue, "")
	var groups []string
	for _, m := range members {
		if g, ok := strings.CutPrefix(m, prefix); ok {
			groups = append(groups, g)
		}
	}
	return groups, nil
}

func (s *subscription) member() string { return keys.Member(s.queue, s.group) }
