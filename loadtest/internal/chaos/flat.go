package chaos

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
)

// growth is how much the median of the last third of a series may be above that of the middle third: a tenth of it, and slack for
// what is small.
const (
	growth         = 0.10
	slackRedis     = 2 << 20
	slackWorker    = 4 << 20
	slackCount     = 5
	slackConsumers = 10
	// consumerLife is when a consumer that holds nothing is deleted at the latest: five minutes of idleness, and a while
	// until somebody looks.
	consumerLife = 7 * time.Minute
)

// flat checks that nothing grows while messages are published at an even rate.
func (r *run) flat(plots []report.Plot) []report.Check {
	checks := []report.Check{r.level(plots, "memory of Redis does not grow", plotMemory, seriesMemory, slackRedis, "bytes")}
	for i := range r.opts.Spared {
		name := supervisor.Name(i)
		checks = append(checks,
			r.level(plots, "memory of "+name+", which is not killed, does not grow", plotResident, name, slackWorker, "bytes"),
			r.level(plots, "goroutines of "+name+" do not grow", plotGoroutines, name, slackCount, "goroutines"))
	}
	return append(checks, r.consumers(plots))
}

// level compares the medians of the last two thirds of a series.
func (r *run) level(plots []report.Plot, what, plot, series string, slack float64, unit string) report.Check {
	points := pointsOf(plots, plot, series)
	third := r.published / 3
	middle, last := median(points, third, 2*third), median(points, 2*third, 3*third)
	most := middle*(1+growth) + slack
	return report.Check{
		Name: what, Held: last <= most, // false for what was not measured, which is not a number
		Want: fmt.Sprintf("median of the last third at most %s: 10 %% and %s above the middle third's %s",
			report.FormatValue(most, unit), report.FormatValue(slack, unit), report.FormatValue(middle, unit)),
		Got: report.FormatValue(last, unit),
	}
}

// consumers checks that those of dead workers are deleted in time. Each process has two for each group.
func (r *run) consumers(plots []report.Plot) report.Check {
	events := fault.NewLog(r.events())
	n := events.Most(fault.Kill, consumerLife)
	most := float64(2*r.opts.Groups*(r.opts.Workers+n) + slackConsumers)
	got := 0.0
	for _, p := range pointsOf(plots, plotConsumers, "all groups") {
		if !math.IsNaN(p.V) {
			got = max(got, p.V)
		}
	}
	return report.Check{
		Name: "consumers of dead workers are deleted", Held: got > 0 && got <= most,
		Want: fmt.Sprintf("at most %.0f: two per group for each of %d workers, and for the %d kills within %v", most, r.opts.Workers, n, consumerLife),
		Got:  fmt.Sprintf("%.0f", got),
	}
}

func pointsOf(plots []report.Plot, title, series string) []report.Point {
	for _, p := range plots {
		if p.Title != title {
			continue
		}
		for _, s := range p.Series {
			if s.Name == series {
				return s.Points
			}
		}
	}
	return nil
}

// median of the points within a span; not a number when there are none.
func median(points []report.Point, from, to time.Duration) float64 {
	var values []float64
	for _, p := range points {
		if p.At >= from && p.At < to && !math.IsNaN(p.V) {
			values = append(values, p.V)
		}
	}
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[len(values)/2]
}
