package demo

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisurl"
)

// dial returns a plain client. Its errors name no more than the address.
func dial(url string) (rueidis.Client, error) {
	opts, err := redisurl.Parse(url)
	if err != nil {
		return nil, err
	}
	opts.DisableCache = true
	opts.DisableRetry = true // a server that goes away is an error now, not a wait
	rc, err := rueidis.NewClient(opts)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %v: %w", opts.InitAddress, err)
	}
	return rc, nil
}

// removeKeys deletes every key under a prefix, on every node, until a whole pass finds none.
func removeKeys(ctx context.Context, rc rueidis.Client, prefix string) error {
	for {
		removed, err := removePass(ctx, rc, prefix)
		if err != nil || removed == 0 {
			return err
		}
	}
}

func removePass(ctx context.Context, rc rueidis.Client, prefix string) (removed int, err error) {
	for _, node := range rc.Nodes() {
		for cursor, more := uint64(0), true; more; {
			page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(prefix+"*").Count(1000).Build()).AsScanEntry()
			if err != nil {
				return removed, err
			}
			for _, key := range page.Elements {
				if err := rc.Do(ctx, rc.B().Unlink().Key(key).Build()).Error(); err != nil {
					return removed, err
				}
				removed++
			}
			cursor, more = page.Cursor, page.Cursor != 0
		}
	}
	return removed, nil
}
