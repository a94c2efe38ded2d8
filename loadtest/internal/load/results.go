// Package load measures how fast messages are published, drained and carried from end to end, with the producer and the
// worker processes of the other load tests.
package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/sweep"
)

// Published is a publish phase: as fast as possible, nobody consumes.
type Published struct {
	Connections int
	// Acked is how many publishes were acknowledged in the time Took.
	Acked int64
	Took  time.Duration
}

// Drained is a drain phase: a full queue, worker processes that do nothing else.
type Drained struct {
	Workers int
	// Messages were handled in the time Took, from the start of the first handler to the end of the last one.
	Messages int64
	Took     time.Duration
}

// Carried is an end-to-end phase: producer and workers at the same time.
type Carried struct {
	// Window is what was asked, acknowledged and left behind; Asked is 0 for as fast as possible.
	sweep.Window
	// Latency is from the send to the start of the handler.
	Latency report.Latency
	// Plots show the phase over its time.
	Plots []report.Plot
}

// Results of a run. Any part may be empty.
type Results struct {
	Published []Published
	Drained   []Drained
	Carried   []Carried
	// Sustained is the highest rate that was, and Broken the lowest that was not, where they were searched; else 0.
	Sustained, Broken float64
}

func perSecond(n int64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}

func number(v float64) string { return report.FormatValue(v, "") }

// Fill adds tables, curves, latencies and plots to a report.
func (r *Results) Fill(to *report.Report) {
	r.published(to)
	r.drained(to)
	r.carried(to)
}

func (r *Results) published(to *report.Report) {
	if len(r.Published) == 0 {
		return
	}
	table := report.Table{
		Title: "Publish, as fast as possible, without workers", Columns: []string{"connections", "acknowledged", "took", "messages/s"},
	}
	line := report.Line{Name: "publish"}
	for _, p := range r.Published {
		rate := perSecond(p.Acked, p.Took)
		table.Rows = append(table.Rows, []string{
			number(float64(p.Connections)), report.FormatCount(p.Acked), report.FormatDuration(p.Took), number(rate),
		})
		line.Points = append(line.Points, report.XY{X: float64(p.Connections), Y: rate})
	}
	to.Tables = append(to.Tables, table)
	if len(line.Points) > 1 {
		to.Curves = append(to.Curves, report.Curve{
			Title: "Publish rate by connections", X: "connections", LogX: true, Unit: "messages/s", Lines: []report.Line{line},
		})
	}
}

func (r *Results) drained(to *report.Report) {
	if len(r.Drained) == 0 {
		return
	}
	table := report.Table{
		Title: "Drain of a full queue, without a producer, from when all workers handle", Columns: []string{"worker processes", "messages", "took", "messages/s"},
	}
	line := report.Line{Name: "drain"}
	for _, d := range r.Drained {
		rate := perSecond(d.Messages, d.Took)
		table.Rows = append(table.Rows, []string{
			number(float64(d.Workers)), report.FormatCount(d.Messages), report.FormatDuration(d.Took), number(rate),
		})
		line.Points = append(line.Points, report.XY{X: float64(d.Workers), Y: rate})
	}
	to.Tables = append(to.Tables, table)
	if len(line.Points) > 1 {
		to.Curves = append(to.Curves, report.Curve{
			Title: "Drain rate by worker processes", X: "worker processes", LogX: true, Unit: "messages/s", Lines: []report.Line{line},
		})
	}
}

func (r *Results) carried(to *report.Report) {
	if len(r.Carried) == 0 {
		return
	}
	table := report.Table{
		Title:   "End to end: producer and workers together, latency from send to the start of the handler",
		Columns: []string{"asked/s", "acknowledged/s", "backlog grows/s", "p50", "p90", "p99", "p99.9", "max", "sustained"},
	}
	// The search goes back and forth; the table and the lines go by rate.
	r.Carried = slices.SortedStableFunc(slices.Values(r.Carried), func(a, b Carried) int { return cmp.Compare(a.Asked, b.Asked) })
	lines := []report.Line{{Name: "p50"}, {Name: "p99"}, {Name: "p99.9"}}
	for _, c := range r.Carried {
		table.Rows = append(table.Rows, c.row())
		if c.Asked > 0 {
			for i, d := range []time.Duration{c.Latency.P50, c.Latency.P99, c.Latency.P999} {
				lines[i].Points = append(lines[i].Points, report.XY{X: c.Asked, Y: d.Seconds()})
			}
		}
		to.Latency = append(to.Latency, c.Latency)
	}
	to.Tables = append(to.Tables, table)
	if len(lines[0].Points) > 1 {
		to.Curves = append(to.Curves, report.Curve{
			Title: "End-to-end latency by rate", X: "messages/s asked", LogX: true, Unit: "s", Log: true, Lines: lines,
		})
	}
	// A sweep has too many phases to plot each one over its time.
	if len(r.Carried) == 1 {
		to.Plots = append(to.Plots, r.Carried[0].Plots...)
	}
}

// row of the table of end-to-end phases.
func (c Carried) row() []string {
	asked, sustained := "all", "-"
	if c.Asked > 0 {
		asked, sustained = number(c.Asked), "yes"
		if ok, why := c.Sustained(); !ok {
			sustained = "no: " + why
		}
	}
	row := []string{asked, number(c.Rate()), number(c.Growth())}
	for _, d := range []time.Duration{c.Latency.P50, c.Latency.P90, c.Latency.P99, c.Latency.P999, c.Latency.Max} {
		row = append(row, report.FormatDuration(d))
	}
	return append(row, sustained)
}
