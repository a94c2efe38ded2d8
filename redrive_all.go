package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// ErrCanary is what RedriveAll returns when a dead letter of its canary died again, when no worker is alive to handle them, or
// when they were not all finished in time; the others stay.
var ErrCanary = errors.New("xstreamq: the canary failed")

// RedriveAllOptions say which dead letters are redriven, and how fast. The zero value takes all at once.
type RedriveAllOptions struct {
	RedriveOptions
	// Filter chooses them.
	Filter DeadFilter
	// Limit is how many are redriven at most, the oldest. 0: all. Negative is an error.
	Limit int
	// Rate is how many are redriven per second, a tenth of that at once. 0: as many as can be. Negative is an error.
	Rate float64
	// Canary is how many are redriven first: the rest follows when all of these are finished, and not when one of them died
	// again, or when no worker has been alive for 10s. It does not go with ToQueue. 0: none. Negative is an error. When there
	// are fewer, all are redriven and none is watched.
	Canary int
	// CanaryTimeout is how long they may take, all retries included. Default 5m. Negative is an error.
	CanaryTimeout time.Duration
	// DryRun changes nothing: Redriven lists what would be, and Each is told of it.
	DryRun bool
	// Progress, if set, is called after each call to Redis with the number of dead letters looked at and redriven so far.
	Progress func(looked, redriven int)
}

const defaultCanaryTimeout = 5 * time.Minute

func (o RedriveAllOptions) compile() (*deadChooser, error) {
	errs := []error{
		countNotNegative("Limit", o.Limit), checkRate(o.Rate),
		countNotNegative("Canary", o.Canary), notNegative("CanaryTimeout", o.CanaryTimeout),
	}
	if o.Canary > 0 && o.ToQueue {
		errs = append(errs, errors.New("a Canary does not go with ToQueue: what was published anew cannot be told from the rest"))
	}
	choose, err := o.Filter.compile()
	return choose, errors.Join(configError("RedriveAllOptions", errs), err)
}

// RedriveAll redrives the dead letters of a group that are there when it begins, oldest first, each as Redrive does: it
// ends also when handlers go on failing. Those that another call redrove meanwhile are passed over. Those that cannot be
// redriven are listed, and stay.
//
// An error in the middle comes with what was done before it; call it again to go on. ErrCanary, ErrInvalidConfig, ErrNoQueue,
// ErrNoGroup. Without a deadline each call to Redis is given 5s; the result takes some 40 bytes per dead letter.
func (c *Client) RedriveAll(ctx context.Context, queue, group string, o RedriveAllOptions) (RedriveResult, error) {
	choose, err := o.compile()
	if err != nil {
		return RedriveResult{}, err
	}
	w, err := c.walkDead(ctx, queue, group, choose)
	if err != nil {
		return RedriveResult{}, err
	}
	setDefault(&o.CanaryTimeout, defaultCanaryTimeout)
	r := &redriver{client: c, keys: keys.ForGroup(c.cfg.KeyPrefix, queue, group), walk: w, opts: o, pace: newPace(o.Rate)}
	if o.Canary > 0 && !o.DryRun {
		r.canary = newCanary(c, queue, group, w.last)
	}
	for w.more() && !r.full() && err == nil {
		err = r.page(ctx)
	}
	if err != nil {
		err = opError("redrive", queue, group, err)
	}
	return r.result, err
}

// redriver is one call of RedriveAll.
type redriver struct {
	client *Client
	keys   keys.Set
	walk   *deadWalk
	opts   RedriveAllOptions
	pace   *pace
	canary *canary // nil when it has passed, or none is wanted
	result RedriveResult
}

// full: Limit is reached.
func (r *redriver) full() bool { return r.opts.Limit > 0 && len(r.result.Redriven) >= r.opts.Limit }

func (r *redriver) page(ctx context.Context) error {
	rest, err := r.walk.page(ctx)
	if err != nil {
		return err
	}
	for len(rest) > 0 && !r.full() {
		n := min(len(rest), r.batch())
		if r.opts.DryRun {
			r.pretend(rest[:n])
		} else if err := r.move(ctx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
		r.progress()
	}
	r.progress()
	return nil
}

func (r *redriver) progress() {
	if r.opts.Progress != nil {
		r.opts.Progress(r.walk.looked, len(r.result.Redriven))
	}
}

// batch is how many may go at once.
func (r *redriver) batch() int {
	n, done := r.pace.most, len(r.result.Redriven)
	if r.opts.Limit > 0 {
		n = min(n, r.opts.Limit-done)
	}
	if r.canary != nil {
		n = min(n, r.opts.Canary-done)
	}
	return n
}

func (r *redriver) move(ctx context.Context, batch []deadEntry) error {
	if err := r.pace.wait(ctx, len(batch)); err != nil {
		return err
	}
	ids := make([]string, len(batch))
	original := make(map[string]string, len(batch))
	for i := range batch {
		ids[i] = batch[i].ID
		original[ids[i]] = batch[i].OriginalID
	}
	err := r.client.redrive(ctx, r.keys, ids, r.opts.ToQueue, func(a redriveAnswer) {
		if a.state == redriveGone {
			return
		}
		r.result.add(a, r.opts.Each)
		if a.state == redriveDone && r.canary != nil {
			r.canary.add(original[a.id], a.text)
		}
	})
	if err != nil || r.canary == nil || len(r.result.Redriven) < r.opts.Canary {
		return err
	}
	err = r.canary.watch(ctx, r.opts.CanaryTimeout)
	r.canary = nil
	return err
}

// pretend says what move would do.
func (r *redriver) pretend(batch []deadEntry) {
	for i := range batch {
		a := redriveAnswer{id: batch[i].ID, state: redriveDone}
		if why := batch[i].staysFor(r.opts.ToQueue); why != "" {
			a.state, a.text = redriveRefused, why
		}
		r.result.add(a, r.opts.Each)
	}
}

// pace spreads what is redriven over time. It catches up on nothing: after a delay the rate is the same.
type pace struct {
	most  int           // at once
	every time.Duration // for one
	next  time.Time
}

func checkRate(rate float64) error {
	if rate >= 0 {
		return nil
	}
	return errors.New("the Rate must be a number, and not negative") // NaN comes here too
}

func newPace(rate float64) *pace {
	if rate == 0 {
		return &pace{most: redrivePage}
	}
	const slowest = float64(30 * 24 * time.Hour) // for rates that are almost 0
	return &pace{
		most:  int(max(1, min(rate/10, redrivePage))),
		every: time.Duration(min(float64(time.Second)/rate, slowest)),
	}
}

// wait waits until n more may go.
func (p *pace) wait(ctx context.Context, n int) error {
	if p.every == 0 {
		return nil
	}
	if err := sleep(ctx, time.Until(p.next)); err != nil {
		return err
	}
	p.next = time.Now().Add(time.Duration(n) * p.every)
	return nil
}

// sleep returns after d, or with the cause of the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped in the middle: %w", context.Cause(ctx))
	}
}
