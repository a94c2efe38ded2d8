package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/rediserr"
)

// How often it is asked whether a group is empty: often at first, for a job that is soon done.
const (
	askFirst   = 200 * time.Millisecond
	askAtLeast = time.Second
)

// untilEmpty returns errNothingLeft when nothing waits in a group any more, and why ctx ended when it does before. An answer that does
// not come, or does not say, is no reason to end; one that never will is, such as a missing permission.
func untilEmpty(ctx context.Context, log *slog.Logger, depth func(context.Context) (xstreamq.Depth, error)) error {
	told := false
	for wait := askFirst; ; wait = min(wait*5/4, askAtLeast) {
		d, err := depth(ctx)
		if err == nil && d.Backlog == xstreamq.UnknownLag {
			err = errors.New("its backlog could not be counted")
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && d.Empty():
			return errNothingLeft
		case rediserr.Code(err) == "NOPERM", rediserr.Code(err) == "WRONGTYPE", rediserr.Code(err) == "XQTYPE":
			return fmt.Errorf("cannot tell whether the group is empty: %w", err)
		case err != nil && !told:
			log.Warn("cannot tell whether the group is empty; it is asked again", "error", err)
		}
		told = err != nil
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
