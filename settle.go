package xstreamq

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/wire"
)

const (
	// One XACK carries many ids: those of the time that the one before takes, and, when those are ackCrowd or more, of
	// ackDelay besides, up to ackBatch. A kill in that time makes finished messages run again.
	ackBatch = 256
	ackCrowd = 8
	ackDelay = time.Millisecond
)

// settle writes the outcome of one delivery: at once, or with others. What cannot be written is tried again until it is, or
// until Stop ends, and the lease is renewed meanwhile: an outage turns no failure into a lost lease.
func (s *subscription) settle(d *delivery, v verdict) {
	lost := s.pool.judged(d)
	switch {
	case v.isAck():
		d.outcome = v.outcome
		s.end(d)
	case s.opts.NoVisibilityTimeout && (v.outcome == Retried || v.outcome == Released):
		s.pool.forget(d)
		s.observe(Kept, "", 1)
	case lost:
		s.pool.forget(d)
		s.observe(Lost, "", 1)
	default:
		if err := s.write(s.settleCtx, d, v, false); err != nil {
			s.park(d, v, err)
		}
	}
}

// isAck: the verdict ends the message.
func (v verdict) isAck() bool {
	return v.outcome == Acked || v.outcome == Discarded || v.outcome == Skipped
}

// end has a message acked with others, or, when Stop has flushed the last of them, alone.
func (s *subscription) end(d *delivery) {
	if !d.lane.acks.Add(d) && s.ack(s.settleCtx, d.lane, []*delivery{d}, false) != nil {
		s.pool.forget(d)
	}
}

// write is one call of the fail script: retry, release with a delay, or dead letter. again says that an earlier call may have
// been carried out.
func (s *subscription) write(ctx context.Context, d *delivery, v verdict, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	args := failArgs{
		Group: d.lane.group, Consumer: s.consumer, ID: d.entry.ID, Ours: d.lane.ours,
		Budget: -1, Delay: ceilMillis(v.delay), Reason: string(v.reason), Err: errorText(v.err),
	}
	if v.spend {
		args.Spend, args.Budget = 1, budget(s.opts.MaxRetries)
	}
	status, dead, err := s.fail(ctx, d.lane, args)
	if err == nil && status == failMissing {
		// Deleted or trimmed while it was pending: what this process read is the last copy.
		args.Held = packFields(d.fields)
		status, dead, err = s.fail(ctx, d.lane, args)
	}
	if err != nil {
		return err
	}
	s.pool.forget(d)
	switch {
	case status == failDead:
		reason := v.reason
		if reason == "" {
			reason = Failed
		}
		s.observe(Dead, reason, 1)
		s.buried(dead)
	case status == failWaiting:
		s.observe(v.outcome, "", 1)
		if v.delay < promoteEvery {
			s.promoter.Wake()
		}
	case again:
		s.observe(Unknown, "", 1)
	default:
		s.observe(Lost, "", 1)
	}
	return nil
}

func (s *subscription) fail(ctx context.Context, l *lane, args failArgs) (status int64, dead string, err error) {
	reply, err := runFail(ctx, s.client.redis, l.keys, args).ToArray()
	if err != nil {
		return 0, "", err
	}
	r := replyReader{reply: reply}
	status, dead = r.int(), r.string()
	return status, dead, r.err
}

// packFields packs an entry as it was read.
func packFields(fields []rueidis.RedisMessage) string {
	var b []byte
	for i := range fields {
		f, err := fields[i].ToString()
		if err != nil {
			f = ""
		}
		b = wire.AppendPacked(b, f)
	}
	return rueidis.BinaryString(b)
}

// flushAcks ends the messages of one batch; what fails is parked.
func (s *subscription) flushAcks(l *lane, ds []*delivery) {
	for len(ds) > 0 {
		n := min(len(ds), 2*ackBatch)
		if err := s.ack(s.settleCtx, l, ds[:n], false); err != nil {
			for _, d := range ds[:n] {
				s.park(d, verdict{outcome: d.outcome}, err)
			}
		}
		ds = ds[n:]
	}
}

// ack ends messages that are handled. A message that was moved in the meantime has another id, so a late ack finds nothing.
func (s *subscription) ack(ctx context.Context, l *lane, ds []*delivery, again bool) error {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	rc := s.client.redis
	var ended int64
	var err error
	if l.ours || s.opts.Dedupe > 0 {
		ids := make([]string, 0, 2*len(ds))
		for _, d := range ds {
			ids = append(ids, d.entry.ID, d.entry.Original)
		}
		ended, err = runAck(ctx, rc, l.keys, ackArgs{
			Group: l.group, Ours: l.ours, Keep: ceilMillis(s.opts.Dedupe), IDs: ids,
		}).AsInt64()
	} else {
		// The builder takes single ids without a slice of its own.
		cmd := rc.B().Xack().Key(l.keys.Source).Group(l.group).Id(ds[0].entry.ID)
		for _, d := range ds[1:] {
			cmd = cmd.Id(d.entry.ID)
		}
		ended, err = rc.Do(ctx, cmd.Build()).AsInt64()
	}
	if err != nil {
		return err
	}
	s.pool.forget(ds...)
	s.observeAcks(ds, int(ended), again)
	return nil
}
