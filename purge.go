package xstreamq

import (
	"context"
	"errors"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// purgePage is how many dead letters one call deletes at most.
const purgePage = 500

// Purge deletes dead letters for good, and returns how many of these ids it found. An id that Redis cannot read is
// ErrInvalidMessage, and nothing is done. Nothing else than Purge and PurgeAll ever deletes a dead letter. ErrNoQueue and
// ErrNoGroup are returned when there was nothing to do. An error in the middle comes with what was done before it. Without
// a deadline each call to Redis, for 500 ids, is given 5s; when ctx is cancelled, the answer to the one under way is awaited for up
// to a second.
func (c *Client) Purge(ctx context.Context, queue, group string, ids ...string) (int, error) {
	if err := checkNames(queue, group); err != nil {
		return 0, err
	}
	ids, err := parseIDs(ids)
	if err != nil {
		return 0, err
	}
	purged := 0
	for rest := ids; len(rest) > 0 && err == nil; rest = rest[min(len(rest), purgePage):] {
		var n int
		n, err = c.purge(ctx, queue, group, rest[:min(len(rest), purgePage)])
		purged += n
	}
	if err == nil && purged == 0 && len(ids) > 0 {
		err = c.known(ctx, queue, group)
	}
	if err != nil {
		err = opError("purge", queue, group, err)
	}
	return purged, err
}

// purge is one call.
func (c *Client) purge(ctx context.Context, queue, group string, ids []string) (int, error) {
	key := keys.ForGroup(c.cfg.KeyPrefix, queue, group).DLQ
	n, err := changed(ctx, func(ctx context.Context) (int64, error) {
		return c.redis.Do(ctx, c.redis.B().Xdel().Key(key).Id(ids...).Build()).AsInt64()
	})
	if err != nil {
		return 0, keyError(key, err)
	}
	return int(n), nil
}

// PurgeAllOptions say which dead letters are deleted.
type PurgeAllOptions struct {
	// Filter chooses them. The zero value chooses all.
	Filter DeadFilter
	// Limit is how many are deleted at most, the oldest. 0: all. Negative is an error.
	Limit int
	// DryRun deletes nothing, and counts what would be.
	DryRun bool
	// Progress, if set, is called after each page with the number of dead letters looked at and deleted so far.
	Progress func(looked, purged int)
}

func (o PurgeAllOptions) compile() (*deadChooser, error) {
	choose, err := o.Filter.compile()
	return choose, errors.Join(configError("PurgeAllOptions", []error{countNotNegative("Limit", o.Limit)}), err)
}

// PurgeAll deletes the dead letters of a group that are there when it begins and that the filter chooses, and returns how many.
// An error in the middle comes with what was done before it. ErrInvalidConfig, ErrNoQueue, ErrNoGroup. Without a deadline each
// call to Redis is given 5s.
func (c *Client) PurgeAll(ctx context.Context, queue, group string, o PurgeAllOptions) (int, error) {
	choose, err := o.compile()
	if err != nil {
		return 0, err
	}
	w, err := c.walkDead(ctx, queue, group, choose)
	if err != nil {
		return 0, err
	}
	purged := 0
	for w.more() && (o.Limit == 0 || purged < o.Limit) {
		page, err := w.page(ctx)
		if err != nil {
			return purged, opError("purge", queue, group, err)
		}
		if o.Limit > 0 {
			page = page[:min(len(page), o.Limit-purged)]
		}
		n, err := c.purgeEntries(ctx, w, page, o.DryRun)
		purged += n
		if err != nil {
			return purged, opError("purge", queue, group, err)
		}
		if o.Progress != nil {
			o.Progress(w.looked, purged)
		}
	}
	return purged, nil
}

func (c *Client) purgeEntries(ctx context.Context, w *deadWalk, page []deadEntry, dryRun bool) (int, error) {
	if dryRun || len(page) == 0 {
		return len(page), nil
	}
	ids := make([]string, len(page))
	for i := range page {
		ids[i] = page[i].ID
	}
	return c.purge(ctx, w.queue, w.group, ids)
}
