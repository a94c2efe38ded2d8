package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/service"
	"github.com/xstreamq/xstreamq/internal/wire"
)

const (
	// ackBatch and ackDelay: one XACK carries many ids.
	ackBatch = 256
	ackDelay = time.Millisecond
	// settleEvery is how often outcomes that could not be written are tried again.
	settleEvery = 250 * time.Millisecond
)

// settle writes the outcome of one delivery: at once, or with others. What cannot be written is tried again until it is, or
// until Stop ends, and the lease is renewed meanwhile: an outage turns no failure into a lost lease.
func (s *subscription) settle(d *delivery, v verdict) {
	lost := s.pool.judged(d)
	switch {
	case v.outcome == Acked || v.outcome == Discarded || v.outcome == Skipped:
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

func (s *subscription) observeAcks(ds []*delivery, ended int, again bool) {
	if s.client.cfg.Observer.Settled == nil {
		return
	}
	short := len(ds) - ended
	counts := map[Outcome]int{}
	for _, d := range ds {
		counts[d.outcome]++
	}
	// Which of them were late cannot be told: the handled ones are the likely ones.
	for _, o := range []Outcome{Acked, Discarded, Skipped} {
		late := min(short, counts[o])
		short -= late
		s.observe(o, "", counts[o]-late)
		if again {
			s.observe(Unknown, "", late)
		} else {
			s.observe(Late, "", late)
		}
	}
}

func (s *subscription) observe(o Outcome, reason Reason, n int) {
	if n > 0 && s.client.cfg.Observer.Settled != nil {
		s.client.cfg.Observer.Settled(Settled{Queue: s.queue, Group: s.group, Outcome: o, Reason: reason, Count: n})
	}
}

// unsettled holds deliveries whose outcome could not be written yet.
type unsettled struct {
	mu   sync.Mutex
	list []parked
}

type parked struct {
	d      *delivery
	v      verdict
	unsure bool // an earlier write may have been carried out
}

func (u *unsettled) add(p ...parked) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, p...)
}

func (u *unsettled) takeAll() []parked {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.list
	u.list = nil
	return all
}

func (u *unsettled) len() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.list)
}

// park keeps an outcome for later.
func (s *subscription) park(d *delivery, v verdict, err error) {
	if s.settleCtx.Err() != nil {
		s.pool.forget(d)
		return
	}
	s.log.Warn("an outcome cannot be written yet; the message stays where it is, and it is tried again",
		"id", d.entry.Original, "outcome", string(v.outcome), "error", err)
	refused := redisCode(err) != ""
	s.unwritten.add(parked{d, v, !refused})
}

// newSettler returns the loop that tries parked outcomes again.
func (s *subscription) newSettler() *service.Loop {
	return service.New(service.Options{Name: "settler", Step: s.settleParked, OnError: s.loopError("settler")})
}

// settleParked tries every parked outcome once. One that Redis refuses, such as a key of the wrong type, does not hold up the
// others; a connection that is down does.
func (s *subscription) settleParked(ctx context.Context) (time.Duration, error) {
	todo := s.unwritten.takeAll()
	if len(todo) == 0 {
		return settleEvery, nil
	}
	var failed error
	for i := 0; i < len(todo); {
		n, err := s.settleNext(ctx, todo[i:])
		if err != nil {
			failed = err
			refused := redisCode(err) != ""
			for j := range todo[i : i+n] {
				todo[i+j].unsure = todo[i+j].unsure || !refused
			}
			s.unwritten.add(todo[i : i+n]...)
			if !refused {
				s.unwritten.add(todo[i+n:]...)
				break
			}
		}
		i += n
	}
	if failed != nil {
		return 0, fmt.Errorf("%d outcomes are not written: %w", s.unwritten.len(), failed)
	}
	return settleEvery, nil
}

// settleNext tries the first of the parked outcomes; acks of one lane go together. It returns how many it tried.
func (s *subscription) settleNext(ctx context.Context, todo []parked) (n int, err error) {
	first := todo[0]
	if !first.v.isAck() {
		err = s.write(ctx, first.d, first.v, first.unsure)
		return 1, s.repaired(ctx, first.d.lane, err)
	}
	var ds []*delivery
	for _, p := range todo {
		if !p.v.isAck() || p.d.lane != first.d.lane || len(ds) == ackBatch {
			break
		}
		ds = append(ds, p.d)
	}
	return len(ds), s.ack(ctx, first.d.lane, ds, first.unsure)
}

// repaired brings back a group that a write found gone, so that the next try can succeed.
func (s *subscription) repaired(ctx context.Context, l *lane, err error) error {
	if err != nil && groupGone(err) {
		if mend := s.repair(ctx, l); mend != nil {
			return mend
		}
	}
	return err
}

func (v verdict) isAck() bool {
	return v.outcome == Acked || v.outcome == Discarded || v.outcome == Skipped
}

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
		if expiry, err := marks[i].AsFloat64(); err != nil || expiry < float64(now[0]*1000+now[1]/1000) {
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
