// Package sweep says whether a rate was sustained, and finds the highest one that is.
package sweep

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// MinShare of the asked rate must be acknowledged.
	MinShare = 0.97
	// MaxGrowth is the share of the asked rate by which the backlog may grow over the second half of a window: a slope
	// that noise alone may have.
	MaxGrowth = 0.01
	// noise is a growth in messages per second that says nothing at low rates, where few batches make a slope.
	noise = 50
)

// Definition says when a rate counts as sustained.
const Definition = "at least 97 % of the asked rate acknowledged, and a backlog that over the second half of the window grows " +
	"by at most 1 % of the asked rate (50/s at low rates), by the median slope"

// Sample is the backlog, in messages, at a time since the window began.
type Sample struct {
	At      time.Duration
	Backlog int64
}

// Window is what was seen while messages were published at a fixed rate, in messages per second.
type Window struct {
	Asked float64
	// Acked is how many publishes were acknowledged in the window, Took is how long it was.
	Acked int64
	Took  time.Duration
	// Backlog is ordered by time.
	Backlog []Sample
}

// Rate is that of the acknowledged publishes, and 0 for an empty window.
func (w Window) Rate() float64 {
	if w.Took <= 0 {
		return 0
	}
	return float64(w.Acked) / w.Took.Seconds()
}

// Growth is the slope of the backlog over the second half of the window, in messages per second: the median of the slopes
// between any two samples (Theil and Sen), which a moment of noise does not change. It is NaN when there are fewer than three.
func (w Window) Growth() float64 {
	var half []Sample
	for _, s := range w.Backlog {
		if s.At >= w.Took/2 && s.At <= w.Took {
			half = append(half, s)
		}
	}
	var slopes []float64
	for i, from := range half {
		for _, to := range half[i+1:] {
			if to.At > from.At {
				slopes = append(slopes, float64(to.Backlog-from.Backlog)/(to.At-from.At).Seconds())
			}
		}
	}
	if len(half) < 3 || len(slopes) == 0 {
		return math.NaN()
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2]
}

// Sustained tells whether the rate was, by [Definition], and if not, why. A window with too few samples was not.
func (w Window) Sustained() (ok bool, why string) {
	if rate := w.Rate(); rate < MinShare*w.Asked {
		return false, fmt.Sprintf("%.0f/s acknowledged", rate)
	}
	growth := w.Growth()
	if math.IsNaN(growth) {
		return false, "the backlog was not seen"
	}
	if growth > max(MaxGrowth*w.Asked, noise) {
		return false, fmt.Sprintf("backlog grows by %.0f/s", growth)
	}
	return true, ""
}

// Highest tries the rate first and doubles it until one is not sustained or exceeds limit; then it tries the middle
// between the highest that was and the lowest that was not, steps times. It returns both; broken is 0 when nothing up to
// limit broke, and sustained is 0 when no rate held.
func Highest(
	ctx context.Context, first, limit float64, steps int, try func(ctx context.Context, rate float64) (bool, error),
) (sustained, broken float64, err error) {
	for rate := first; rate <= limit; rate *= 2 {
		ok, err := try(ctx, rate)
		if err != nil {
			return sustained, 0, err
		}
		if !ok {
			broken = rate
			break
		}
		sustained = rate
	}
	for ; broken > 0 && steps > 0; steps-- {
		middle := math.Round((sustained + broken) / 2)
		ok, err := try(ctx, middle)
		if err != nil {
			return sustained, broken, err
		}
		if ok {
			sustained = middle
		} else {
			broken = middle
		}
	}
	return sustained, broken, nil
}
