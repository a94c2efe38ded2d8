package xstreamq

import (
	"context"
	"errors"
)

// withoutDone ends what Dedupe knows as handled, and returns the rest. When it cannot be asked everything runs.
func (s *subscription) withoutDone(ctx context.Context, ds []*delivery) []*delivery {
	if s.opts.Dedupe == 0 || len(ds) == 0 {
		return ds
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	ids := make([]string, len(ds))
	for i, d := range ds {
		ids[i] = d.entry.Original
	}
	rc := s.client.redis
	replies := rc.DoMulti(ctx, rc.B().Zmscore().Key(s.queueLane.keys.Done).Member(ids...).Build(), rc.B().Time().Build())
	marks, err := replies[0].ToArray()
	now, timeErr := replies[1].AsIntSlice()
	if err = errors.Join(err, timeErr); err != nil || len(marks) != len(ds) || len(now) != 2 {
		s.log.Warn("Dedupe could not be asked; messages may run again", "error", err)
		return ds
	}
	fresh, done := ds[:0], []*delivery(nil)
	for i, d := range ds {
		// An expired marker stays until acks prune it.
		if expiry, err := marks[i].AsFloat64(); err != nil || expiry <= float64(now[0]*1000+now[1]/1000) {
			fresh = append(fresh, d)
		} else {
			done = append(done, d)
		}
	}
	for _, d := range done {
		d.outcome = Skipped
		s.pool.hold(d)
		s.end(d)
	}
	return fresh
}
