package report

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
)

// mostLabels fit beside each other on an axis of a phone's width.
const mostLabels = 7

// span is the range of the values on one axis.
type span struct{ low, high float64 }

// nothing is the span of no values.
var nothing = span{math.Inf(1), math.Inf(-1)}

// with returns the span widened by v.
func (s span) with(v float64) span { return span{min(s.low, v), max(s.high, v)} }

// linear returns the bounds and labels of a linear axis of values divided by the scale. It begins at zero unless a value
// lies below.
func (s span) linear(by float64) (low, high float64, ticks []plot.Tick) {
	low, high = min(s.low/by, 0), max(s.high/by, 0)
	if low == high {
		high = low + 1
	}
	step := niceStep((high - low) / (mostLabels - 2))
	first, last := math.Floor(low/step), math.Ceil(high/step)
	for i := first; i <= last; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: tickLabel(i * step)})
	}
	return first * step, last * step, ticks
}

// niceStep is the least of 1, 2 and 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*decade >= v {
			return m * decade
		}
	}
	return 10 * decade
}

// logarithmic returns the bounds and labels of a logarithmic axis, for a span above zero. Over few decades 2 and 5 are
// labelled too; over many, some decades are not.
func (s span) logarithmic(by float64) (low, high float64, ticks []plot.Tick) {
	first, last := math.Floor(math.Log10(s.low/by)), math.Ceil(math.Log10(s.high/by))
	if first == last {
		last++
	}
	every := math.Ceil((last - first) / (mostLabels - 1))
	for decade := first; decade <= last; decade++ {
		for m := 1.0; m < 10 && (m == 1 || decade < last); m++ {
			v, label := m*math.Pow(10, decade), ""
			between := (m == 2 || m == 5) && last-first <= 2
			if between || m == 1 && math.Mod(decade-first, every) == 0 {
				label = tickLabel(v)
			}
			ticks = append(ticks, plot.Tick{Value: v, Label: label})
		}
	}
	return math.Pow(10, first), math.Pow(10, last), ticks
}

// steps returns a label for each x that occurs, when they are few and none would touch the next on a logarithmic axis.
func steps(xs []float64) ([]plot.Tick, bool) {
	slices.Sort(xs)
	xs = slices.Compact(xs)
	if len(xs) == 0 || len(xs) > mostLabels+2 {
		return nil, false
	}
	var ticks []plot.Tick
	width := math.Log(xs[len(xs)-1] / xs[0])
	for i, x := range xs {
		if i > 0 && math.Log(x/xs[i-1])/width < 1.0/(mostLabels+2) {
			return nil, false
		}
		ticks = append(ticks, plot.Tick{Value: x, Label: tickLabel(x)})
	}
	return ticks, true
}

// tickLabel is short: 20k, 1.5M.
func tickLabel(v float64) string {
	for _, s := range []scale{{1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if math.Abs(v) >= s.by {
			by := s.by
			if s.name == "k" {
				by = 1e3
			}
			return strconv.FormatFloat(v/by, 'g', 5, 64) + s.name
		}
	}
	return strconv.FormatFloat(v, 'g', 5, 64)
}
