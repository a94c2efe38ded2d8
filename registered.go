package xstreamq

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// Registration is a group that has subscribed at some time, with the settings that its workers noted last.
type Registration struct {
	Queue, Group string
	// VisibilityTimeout is the length of its leases; 0: it has none.
	VisibilityTimeout time.Duration
	// MaxRetries and MaxLostLeases are its budgets, as in SubscribeOptions: NoRetries, RetryForever. 0: its row does not say.
	MaxRetries, MaxLostLeases int
	// Dedupe is how long handled messages are remembered; 0: not at all.
	Dedupe time.Duration
	// FirstSeen and LastSeen are server times. A running worker notes LastSeen every minute. Zero when the row does not say.
	FirstSeen, LastSeen time.Time
}

// registryPage is how many rows one call is to fetch.
const registryPage = 500

// Registered lists every group in the registry, by queue and group. It is read in pages. Rows of names that cannot be are left
// out; a row that cannot be read has its names alone. Without a deadline each call to Redis is given 5s.
func (c *Client) Registered(ctx context.Context) ([]Registration, error) {
	registry := keys.ForQueue(c.cfg.KeyPrefix, "").Registry
	rc := c.redis
	var found []Registration
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		page, err := bounded(ctx, func(ctx context.Context) (rueidis.ScanEntry, error) {
			return rc.Do(ctx, rc.B().Hscan().Key(registry).Cursor(cursor).Count(registryPage).Build()).AsScanEntry()
		})
		if err != nil {
			return nil, fmt.Errorf("xstreamq: reading the registry: %w", keyError(registry, err))
		}
		for i := 0; i+1 < len(page.Elements); i += 2 {
			if r, ok := readRegistration(page.Elements[i], page.Elements[i+1]); ok {
				found = append(found, r)
			}
		}
		cursor = page.Cursor
	}
	slices.SortFunc(found, func(a, b Registration) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), strings.Compare(a.Group, b.Group))
	})
	// A hash that changes while it is scanned may give a row twice.
	return slices.CompactFunc(found, func(a, b Registration) bool { return a.Queue == b.Queue && a.Group == b.Group }), nil
}

// registryRow is what a row of the registry holds, see registration and the register script.
type registryRow struct {
	VisibilityMs  int64  `json:"visibility_ms"`
	MaxRetries    *int64 `json:"max_retries"`
	MaxLostLeases *int64 `json:"max_lost_leases"`
	DedupeMs      int64  `json:"dedupe_ms"`
	FirstSeen     int64  `json:"first_seen"`
	LastSeen      int64  `json:"last_seen"`
}

// readRegistration returns false for a member that names no group.
func readRegistration(member, about string) (Registration, bool) {
	queue, group, ok := strings.Cut(member, "/")
	if !ok || checkNames(queue, group) != nil {
		return Registration{}, false
	}
	r := Registration{Queue: queue, Group: group}
	var row registryRow
	if json.Unmarshal([]byte(about), &row) != nil {
		return r, true
	}
	r.VisibilityTimeout, r.Dedupe = fromMillis(row.VisibilityMs), fromMillis(row.DedupeMs)
	r.MaxRetries, r.MaxLostLeases = fromBudget(row.MaxRetries), fromBudget(row.MaxLostLeases)
	r.FirstSeen, r.LastSeen = serverTime(row.FirstSeen), serverTime(row.LastSeen)
	return r, true
}

// fromMillis is a duration that a row says, at most the longest there is.
func fromMillis(ms int64) time.Duration {
	return time.Duration(min(max(ms, 0), math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

func serverTime(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// fromBudget is the inverse of budget.
func fromBudget(n *int64) int {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return NoRetries
	case *n < 0 || *n > math.MaxInt:
		return RetryForever
	}
	return int(*n)
}
