package report

import (
	"math"
	"time"
)

// finite says whether v can be drawn and written as a number.
func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// extremes returns the first, lowest, highest and last value of a series; all are NaN when it has none.
func extremes(points []Point) (first, low, high, last float64) {
	first, low, high, last = math.NaN(), math.NaN(), math.NaN(), math.NaN()
	for _, p := range points {
		if !finite(p.V) {
			continue
		}
		if math.IsNaN(first) {
			first, low, high = p.V, p.V, p.V
		}
		low, high, last = min(low, p.V), max(high, p.V), p.V
	}
	return first, low, high, last
}

// overTime turns a plot into a chart, with the time in the unit that suits its length.
func (p Plot) overTime() chart {
	var longest time.Duration
	for _, s := range p.Series {
		for _, point := range s.Points {
			longest = max(longest, point.At)
		}
	}
	unit, by := "s", time.Second
	switch {
	case longest >= 10*time.Hour:
		unit, by = "h", time.Hour
	case longest >= 10*time.Minute:
		unit, by = "min", time.Minute
	}
	c := chart{Title: p.Title, x: "time (" + unit + ")", unit: p.Unit, logY: p.Log}
	for _, s := range p.Series {
		l := Line{Name: s.Name, Points: make([]XY, len(s.Points))}
		for i, point := range s.Points {
			l.Points[i] = XY{X: float64(point.At) / float64(by), Y: point.V}
		}
		c.lines = append(c.lines, l)
	}
	return c
}

// overX turns a curve into a chart, whose points are marked since they are few.
func (c Curve) overX() chart {
	return chart{Title: c.Title, x: c.X, unit: c.Unit, logX: c.LogX, logY: c.Log, marked: true, lines: c.Lines}
}

// most is the largest value that a picture shows: beyond it the distance of two values may be infinite.
const most = 1e18

// drawable says whether an axis can show v.
func drawable(v float64, log bool) bool {
	return finite(v) && math.Abs(v) <= most && (!log || v >= 1/most)
}

// pieces splits the points of a line at its gaps and at what an axis cannot show.
func pieces(points []XY, logX, logY bool) [][]XY {
	var out [][]XY
	var piece []XY
	for _, p := range points {
		if !drawable(p.X, logX) || !drawable(p.Y, logY) {
			if len(piece) > 0 {
				out, piece = append(out, piece), nil
			}
			continue
		}
		piece = append(piece, p)
	}
	if len(piece) > 0 {
		out = append(out, piece)
	}
	return out
}
