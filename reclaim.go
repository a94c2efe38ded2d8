package xstreamq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq/internal/service"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Bounds of the time between two sweeps; the aim is a tenth of the lease.
const (
	sweepMin = 100 * time.Millisecond
	sweepMax = 5 * time.Second
	// errorWait is how long a loop waits after an error at most. holdMin is more: when Redis comes back, renewers may do that.
	errorWait = time.Second
	holdMin   = 2 * time.Second
	// holdAgain is how many times in a row a late sweeper waits anew: renewers may need several tries, and a server that has lost their
	// script two answers.
	holdAgain = 3
)

// sweeper walks all pending entries of one lane and moves those whose lease has run out: their worker vanished.
type sweeper struct {
	s    *subscription
	lane *lane
	// last is the server's ms at the end of the last sweep, and interval what was meant to lie between that and the next. The script
	// holds them against its clock: after a pause or a clock step it moves nothing, so that the living can renew first.
	last     int64
	interval time.Duration
	// since is when it was late, by the server's ms; 0 = it was on time. The next sweep then moves only what nobody renewed since. again
	// is how often it was late since then.
	since     int64
	again     int
	notBefore time.Time // of the next sweep; until then only the clock is looked at
	delays    []string
}

func (s *subscription) newSweeper(l *lane) *service.Loop {
	w := &sweeper{s: s, lane: l, interval: s.sweepEvery()}
	for _, d := range s.opts.Backoff.lostDelays(s.delayAfter) {
		w.delays = append(w.delays, strconv.FormatInt(ceilMillis(d), 10))
	}
	name := "sweeper"
	if l.ours {
		name = "retry sweeper"
	}
	return service.New(service.Options{
		Name: name, Step: w.sweep, Timeout: time.Minute,
		Quiet:   s.opts.VisibilityTimeout/3 + 15*time.Second, // hold waits for so long
		OnError: s.loopError(name),
	})
}

func (s *subscription) sweepEvery() time.Duration {
	return min(max(s.opts.VisibilityTimeout/10, sweepMin), sweepMax)
}

// page is what one call of the reclaim script did.
type page struct {
	state    int64
	now      int64
	resume   string
	moved    Swept
	heldBack int64
	dead     []string
	problems []string
}

// sweep is one pass over all pending entries.
func (w *sweeper) sweep(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if began.Before(w.notBefore) {
		return w.look(ctx)
	}
	var problem error
	start, gap := "-", int64(0)
	for {
		p, err := w.call(ctx, start, w.last-gap)
		if err != nil {
			if groupGone(err) {
				return 0, w.s.repair(ctx, w.lane)
			}
			return 0, err
		}
		late := w.late(p.now)
		if start == "-" && w.last > 0 {
			// Later pages are judged by the gap before the first one: they follow at once.
			gap = max(0, p.now-w.last)
		}
		w.last = p.now
		w.report(p)
		if len(p.problems) > 0 {
			problem = fmt.Errorf("some messages whose lease ran out stay where they are: %s", p.problems[0])
		}
		// Also who was second at the lock, or found no lease run out yet, holds back after a pause.
		if w.since == 0 && (p.heldBack > 0 || late) {
			w.hold()
			return w.plan(problem), problem
		}
		if p.state != reclaimSwept || p.resume == "" {
			break
		}
		id, ok := wire.ParseID(p.resume)
		if !ok {
			return 0, fmt.Errorf("the server returned %q for a stream id", p.resume)
		}
		start = id.Next().String()
	}
	if w.again > 0 {
		w.hold()
		return w.plan(problem), problem
	}
	w.since = 0
	// A long list is swept less often: never more than a fifth of the time.
	w.notBefore = began.Add(min(5*time.Since(began), sweepMax))
	return w.plan(problem), problem
}

// look only looks at the server's clock: also between two sweeps no pause may go unseen.
func (w *sweeper) look(ctx context.Context) (time.Duration, error) {
	p, err := w.call(ctx, "-", 0)
	if err != nil {
		return 0, err
	}
	late := w.late(p.now)
	w.last = p.now
	switch {
	case late && w.since == 0:
		w.hold()
	case late && w.again <= holdAgain:
		w.putOff()
	}
	return w.plan(nil), nil
}

// plan says when to come back, and keeps it to tell a pause by. A problem has the loop wait longer.
func (w *sweeper) plan(problem error) time.Duration {
	w.interval = w.s.sweepEvery()
	if problem != nil {
		w.interval = max(w.interval, errorWait)
	}
	return w.interval
}

// late reports whether the server's clock is further from what was last seen than a sweep on time would find it.
func (w *sweeper) late(now int64) bool {
	gap := time.Duration(max(now-w.last, w.last-now)) * time.Millisecond
	late := w.last > 0 && gap > w.interval+w.s.opts.VisibilityTimeout/3
	if late && w.since > 0 {
		w.again++
	}
	return late
}

// hold sweeps nothing after a pause until every living worker has had the time to renew. Held back time and again, as on a machine that is
// always too busy, it sweeps all the same: what lives has renewed since.
func (w *sweeper) hold() {
	w.since, w.again = w.last, 0
	w.putOff()
}

func (w *sweeper) putOff() {
	w.notBefore = time.Now().Add(max(w.s.sweepEvery(), w.s.opts.VisibilityTimeout/3, holdMin))
}

func (w *sweeper) call(ctx context.Context, start string, last int64) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	opts := &w.s.opts
	reply, err := runReclaim(ctx, w.s.client.redis, w.lane.keys, reclaimArgs{
		Group: w.lane.group, Ours: w.lane.ours, Start: start, Last: last, Interval: ceilMillis(w.interval),
		Since: w.since, Lease: ceilMillis(opts.VisibilityTimeout), Budget: budget(opts.MaxLostLeases), Cap: int64(opts.RetryMaxLen),
		Seed: int64(rand.Uint32()), Delays: w.delays,
	}).ToArray()
	if err != nil {
		return page{}, err
	}
	r := replyReader{reply: reply}
	p := page{state: r.int(), now: r.int()}
	if p.state != reclaimSwept {
		return p, r.err
	}
	p.resume = r.string()
	p.moved = Swept{Queue: w.s.queue, Group: w.s.group}
	p.moved.Recovered = int(r.int() + r.int())
	p.moved.Released = int(r.int())
	p.heldBack = r.int()
	for _, d := range r.strings() {
		id, reason := splitDead(d)
		p.dead = append(p.dead, id)
		p.moved.Dead = append(p.moved.Dead, reason)
	}
	p.problems = r.strings()
	return p, r.err
}

func (w *sweeper) report(p page) {
	w.s.observeSwept(p.moved)
	for _, id := range p.dead {
		w.s.buried(id)
	}
}
