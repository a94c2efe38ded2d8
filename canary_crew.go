package xstreamq

import (
	"context"
	"slices"
	"strings"
	"time"
)

// canaryGrace is how long a canary waits for a worker when none is alive: one may be about to start, or to be replaced.
const canaryGrace = 10 * time.Second

// crew watches whether a group has workers.
type crew struct {
	consumers func(context.Context) ([]Consumer, error)
	grace     time.Duration
	seen      time.Time // when one was alive last; at first when it was first asked
}

// gone reports that no worker has been alive for the grace.
func (c *crew) gone(ctx context.Context) (bool, error) {
	found, err := c.consumers(ctx)
	unknown := redisCode(err) == "NOPERM" // the watch alone tells then
	if err != nil && !unknown {
		return false, err
	}
	if unknown || c.seen.IsZero() || slices.ContainsFunc(found, mayLive) {
		c.seen = time.Now()
	}
	return time.Since(c.seen) >= c.grace, nil
}

// mayLive is Live, and true of a consumer without leases, which gives no sign of life while its handlers are busy.
func mayLive(c Consumer) bool { return c.Live || strings.HasSuffix(c.Name, "~0") }
