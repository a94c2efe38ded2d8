package cli

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/xstreamq/xstreamq"
)

// How often it is asked whether a group is empty: often at first, for a job that is soon done.
const (
	askFirst   = 200 * time.Millisecond
	askAtLeast = time.Second
)

// untilEmpty returns true when nothing waits in a group any more, and false when ctx ends before. An answer that does not come, or
// does not say, is no reason to end.
func untilEmpty(ctx context.Context, log *slog.Logger, depth func(context.Context) (xstreamq.Depth, error)) bool {
	told := false
	for wait := askFirst; ; wait = min(wait*5/4, askAtLeast) {
		d, err := depth(ctx)
		if err == nil && d.Backlog == xstreamq.UnknownLag {
			err = errors.New("its backlog could not be counted")
		}
		switch {
		case ctx.Err() != nil:
			return false
		case err == nil && d.Empty():
			return true
		case err != nil && !told:
			log.Warn("cannot tell whether the group is empty; it is asked again", "error", err)
		}
		told = err != nil
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}
