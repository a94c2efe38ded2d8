package xstreamq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// scanPage is how many keys one call walks.
const scanPage = 1000

// Queues finds every queue that has messages or a group in Redis, by name, also those that no group ever subscribed to. It walks
// all keys of the server, on a cluster of each node, a thousand with each call: that takes seconds where there are millions. A stream
// of another program whose key looks like a queue's is among them. Without a deadline each call to Redis is given 5s.
func (c *Client) Queues(ctx context.Context) ([]string, error) {
	found := map[string]bool{}
	for addr, node := range c.redis.Nodes() {
		for cursor, more := uint64(0), true; more; more = cursor != 0 {
			next, err := c.scanQueues(ctx, node, cursor, found)
			if err != nil {
				return nil, fmt.Errorf("xstreamq: looking for queues on %s: %w", addr, err)
			}
			cursor = next
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// scanQueues walks one page, and returns where the next one begins; 0 at the end.
func (c *Client) scanQueues(ctx context.Context, node rueidis.Client, cursor uint64, found map[string]bool) (uint64, error) {
	page, err := bounded(ctx, func(ctx context.Context) (rueidis.ScanEntry, error) {
		scan := node.B().Scan().Cursor(cursor).Match(c.cfg.KeyPrefix + "{*}*").Count(scanPage).Build()
		return node.Do(ctx, scan).AsScanEntry()
	})
	if err != nil {
		return 0, err
	}
	var ask rueidis.Commands
	var queues, types []string
	for _, key := range page.Elements {
		queue, kind := c.queueOf(key)
		if kind == "" || found[queue] {
			continue
		}
		queues, types = append(queues, queue), append(types, kind)
		ask = append(ask, c.redis.B().Type().Key(key).Build())
	}
	if len(ask) == 0 {
		return page.Cursor, nil
	}
	answers, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisResult, error) { return c.redis.DoMulti(ctx, ask...), nil })
	if err != nil {
		return 0, err
	}
	for i := range answers {
		kind, err := answers[i].ToString()
		switch {
		case redisCode(err) == "NOPERM": // a queue that this user may not see
		case err != nil:
			return 0, err
		case kind == types[i]:
			found[queues[i]] = true
		}
	}
	return page.Cursor, nil
}

// queueOf says which queue a key makes known, and of what type it is then; empty for all other keys.
func (c *Client) queueOf(key string) (queue, kind string) {
	name, braced := strings.CutPrefix(key, c.cfg.KeyPrefix+"{")
	name, _, closed := strings.Cut(name, "}")
	if !braced || !closed || checkName("queue", name) != nil {
		return "", ""
	}
	switch k := keys.ForQueue(c.cfg.KeyPrefix, name); key {
	case k.Queue:
		return name, "stream"
	case k.Delayed:
		return name, "zset"
	}
	return "", ""
}
