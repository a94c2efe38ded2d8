package xstreamq

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/service"
)

const (
	// compactPage bounds what one call trims, and with it how long it blocks the server.
	compactPage = 20000
	// registerEvery is how often last_seen is refreshed in the registry.
	registerEvery = time.Minute
	// reapEvery and reapIdle: consumers of vanished workers that hold nothing are deleted.
	reapEvery = time.Minute
	reapIdle  = 5 * time.Minute
)

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
	groups, err := s.client.groupsOf(ctx, s.queueLane.keys.Registry, s.queue)
	if err != nil {
		return 0, err
	}
	reply, err := runCompact(ctx, s.client.redis, s.queueLane.keys, compactArgs{
		Retain: ceilMillis(cfg.Retain), Limit: compactPage, Groups: groups,
	}).ToArray()
	if err != nil {
		return 0, err
	}
	r := replyReader{reply: reply}
	trimmed, blocker := r.int(), r.string()
	if r.err != nil {
		return 0, r.err
	}
	if blocker != "" && blocker != "none" {
		s.log.Warn("nothing is trimmed: a registered group is missing from the queue", "missing", blocker)
	}
	if trimmed >= compactPage/2 {
		return clock, nil
	}
	return cfg.CompactEvery, nil
}

// groupsOf returns the registered groups of a queue.
func (c *Client) groupsOf(ctx context.Context, registry, queue string) ([]string, error) {
	// Not Hkeys: rueidis would retry it, and the loop waits by itself.
	members, err := c.redis.Do(ctx, c.redis.B().Arbitrary("HKEYS").Keys(registry).Build()).AsStrSlice()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, err
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

// newReaper returns the loop that deletes consumers of vanished workers.
func (s *subscription) newReaper() *service.Loop {
	step := func(ctx context.Context) (time.Duration, error) {
		return reapEvery, s.reap(ctx, reapIdle, "")
	}
	return service.New(service.Options{
		Name: "reaper", Step: step, Timeout: 2 * commandTimeout, Quiet: reapEvery + 15*time.Second, OnError: s.loopError("reaper"),
	})
}

// reap deletes consumers that hold nothing and were idle for so long; only one of them, if it is named.
func (s *subscription) reap(ctx context.Context, idle time.Duration, only string) error {
	for _, l := range s.lanes {
		err := runReap(ctx, s.client.redis, l.keys, reapArgs{Group: l.group, Idle: ceilMillis(idle), Only: only}).Error()
		if err != nil && !groupGone(err) {
			return err
		}
	}
	return nil
}
