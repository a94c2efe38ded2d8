package xstreamq

import (
	"errors"
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long a failed message waits: Initial after the first failure, Multiplier times as long after each further
// one, Max at most. Jitter comes after the cap, so that messages which failed together part: the wait is between half
// and all of it.
type Backoff struct {
	// Initial is the wait after the first failure. Default 1s. Negative: no wait.
	Initial time.Duration
	// Multiplier is at least 1. Default 2.
	Multiplier float64
	// Max caps the wait. Default 5m; not less than Initial.
	Max time.Duration
	// Func, if set, replaces all of the above: attempt counts from 1, err is what the handler returned, or ErrLeaseLost. What
	// it returns is used as it is, but after a lost lease the jitter applies; negative counts as zero. It is asked about lost
	// leases once, at the start.
	Func func(attempt int, err error) time.Duration
}

// maxDelay keeps due times within what a double holds exactly.
const maxDelay = 100 * 365 * 24 * time.Hour

func (b Backoff) withDefaults() Backoff {
	if b.Initial == 0 {
		b.Initial = time.Second
	}
	if b.Multiplier == 0 {
		b.Multiplier = 2
	}
	if b.Max == 0 {
		b.Max = max(5*time.Minute, b.Initial)
	}
	return b
}

func (b Backoff) validate() error {
	var errs []error
	if b.Multiplier < 1 || math.IsNaN(b.Multiplier) || math.IsInf(b.Multiplier, 0) {
		errs = append(errs, errors.New("Backoff.Multiplier must be a number of at least 1"))
	}
	if b.Max < b.Initial {
		errs = append(errs, errors.New("Backoff.Max must not be less than Backoff.Initial"))
	}
	return errors.Join(errs...)
}

// Delay returns the wait after the attempt-th delivery ended with err, jitter included. It never overflows, and is above zero
// unless Initial is negative or Func says zero.
func (b Backoff) Delay(attempt int, err error) time.Duration {
	b = b.withDefaults()
	if b.Func != nil {
		return min(max(b.Func(attempt, err), 0), maxDelay)
	}
	full := b.full(attempt)
	if full <= 0 {
		return 0
	}
	half := full / 2
	return min(full-half+rand.N(half+1), maxDelay)
}

// full is the wait before jitter.
func (b Backoff) full(attempt int) time.Duration {
	if b.Initial < 0 {
		return 0
	}
	d := float64(b.Initial) * math.Pow(b.Multiplier, float64(max(attempt, 1)-1))
	if !(d < float64(b.Max)) {
		return b.Max
	}
	return time.Duration(d)
}

// lostDelays are the waits after the second, third, ... lost lease, before jitter, for the sweep. ask is for a Func.
func (b Backoff) lostDelays(ask func(attempt int, err error) time.Duration) []time.Duration {
	delays := make([]time.Duration, 0, 16)
	for lost := 2; lost < 2+cap(delays); lost++ {
		if b.Func != nil {
			delays = append(delays, ask(lost, ErrLeaseLost))
			continue
		}
		delays = append(delays, b.full(lost-1))
	}
	return delays
}
