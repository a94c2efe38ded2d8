package xstreamq

import (
	"context"
	"fmt"
	"time"
)

// suspectFrom is how many lost leases make a message suspect of killing its workers. Suspects run one at a time in a process,
// and only the one that runs is charged when the process dies: those read with it, and not begun, come back as releases. So a
// message that kills every process ends as a dead letter alone.
const suspectFrom = 2

func (d *delivery) suspect() bool { return d.entry.Lost >= suspectFrom }

// setApart marks suspects that were just read, and are not in the pool yet, as not begun. If that cannot be written they are
// charged like any other.
func (s *subscription) setApart(ctx context.Context, l *lane, ds []*delivery) {
	var ids []string
	for _, d := range ds {
		if d.suspect() {
			ids = append(ids, d.entry.ID)
		}
	}
	if s.opts.NoVisibilityTimeout {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	for len(ids) > 0 {
		states, err := s.extendIDs(ctx, l, modeUnstarted, ids)
		if err != nil {
			s.log.Warn("messages that lost several leases could not be set apart", "error", err)
			return
		}
		ids = ids[len(states):]
	}
}

// charge comes before a handler. It marks a suspect as begun: from now on the end of this process costs it a lease. And it renews a
// lease that may have run out unnoticed, since this process stood still. Without that the message must not run; it must not
// either when another worker has it.
func (s *subscription) charge(d *delivery) (lost bool, err error) {
	mode := modeRenew
	switch {
	case s.opts.NoVisibilityTimeout:
		return false, nil
	case d.suspect():
		mode = modeStarted
	case d.age < s.opts.VisibilityTimeout*2/3:
		return false, nil
	}
	ctx, cancel := context.WithTimeout(s.settleCtx, commandTimeout)
	defer cancel()
	asked := time.Now()
	states, err := s.extendIDs(ctx, d.lane, mode, []string{d.entry.ID})
	if err != nil {
		return false, fmt.Errorf("its lease could not be renewed before its handler: %w", err)
	}
	return len(s.pool.extended([]*delivery{d}, states, asked)) > 0, nil
}
