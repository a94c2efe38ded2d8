package xstreamq

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// warnOnce looks at how Redis is set up and warns about what can lose messages. Where CONFIG is forbidden it says nothing.
func (c *Client) warnOnce(ctx context.Context) {
	if !c.warned.CompareAndSwap(false, true) || !c.cfg.Logger.Enabled(ctx, slog.LevelWarn) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if policy := c.config(ctx, "maxmemory-policy"); policy != "" && policy != "noeviction" {
		if strings.HasPrefix(policy, "allkeys-") {
			c.cfg.Logger.Warn("Redis may evict whole queues when it is full; set maxmemory-policy noeviction", "policy", policy)
		} else {
			c.cfg.Logger.Warn("maxmemory-policy is not noeviction; use a server of its own for queues", "policy", policy)
		}
	}
	if c.config(ctx, "appendonly") == "no" {
		c.cfg.Logger.Warn("Redis has no append-only file: a restart loses messages; set appendonly yes", "appendonly", "no")
	}
}

// config returns one setting of the server, or "" when it cannot be had.
func (c *Client) config(ctx context.Context, name string) string {
	m, err := c.redis.Do(ctx, c.redis.B().ConfigGet().Parameter(name).Build()).AsStrMap()
	if err != nil {
		return ""
	}
	return m[name]
}
