package report

import (
	"fmt"
	"math"
	"slices"
)

// Names of the rows that marks are about.
const (
	oursName    = "xstreamq"
	bareName    = "bare"
	standInName = "ioredis"
)

// Mark is a figure that a run must reach.
type Mark struct {
	What  string
	Value float64 // NaN: not measured
	Limit float64
	Least bool // Value must be at least Limit; else at most
	Unit  string
	// Fails says why the mark is missed whatever the value; may be empty.
	Fails string
}

// Wanted is the mark in words.
func (m Mark) Wanted() string {
	if m.Least {
		return fmt.Sprintf(">= %g%s", m.Limit, m.Unit)
	}
	return fmt.Sprintf("<= %g%s", m.Limit, m.Unit)
}

// Measured is the value in words.
func (m Mark) Measured() string {
	switch {
	case m.Fails != "":
		return m.Fails
	case math.IsNaN(m.Value):
		return nothing
	}
	return precise(m.Value) + m.Unit
}

// Known reports whether there is a value to judge.
func (m Mark) Known() bool { return m.Fails != "" || !math.IsNaN(m.Value) }

// Met reports whether the value is there and good.
func (m Mark) Met() bool {
	switch {
	case m.Fails != "" || math.IsNaN(m.Value):
		return false
	case m.Least:
		return m.Value >= m.Limit
	}
	return m.Value <= m.Limit
}

// Verdict is "yes", "NO" or "not measured".
func (m Mark) Verdict() string {
	switch {
	case !m.Known():
		return "not measured"
	case m.Met():
		return "yes"
	}
	return "NO"
}

// Marks compares medians.
func (r *Run) Marks() []Mark {
	var marks []Mark
	for _, wanted := range []struct {
		measure Measure
		other   string
		least   float64
	}{
		{Drain1, "asynq", 20}, {Drain1, "watermill", 5}, {Drain1, standInName, 3},
		{EndToEnd, "asynq", 10}, {EndToEnd, "watermill", 3}, {EndToEnd, standInName, 1.5},
		{Publish256, "asynq", 2}, {Publish256, "watermill", 2}, {Publish256, standInName, 2},
	} {
		title := wanted.other
		if s, ok := r.System(wanted.other); ok {
			title = s.Title
		}
		marks = append(marks, Mark{
			What: fmt.Sprintf("%s, beside %s", wanted.measure, title), Value: Median(r.ratio(wanted.measure, wanted.other, false)),
			Limit: wanted.least, Least: true, Unit: " times",
		})
	}
	cpu := Median(r.Find(oursName, Drain1, false).Of(redisCPUOf)) / Median(r.Find(bareName, Drain1, false).Of(redisCPUOf))
	client := Median(r.Find(oursName, EndToEnd, false).Of(clientCPUOf)) / 10
	return append(marks,
		Mark{What: "Redis CPU per drained message, beside the bare loop", Value: cpu, Limit: 1.3, Unit: " times"},
		r.latencyMark(8_000, true, "p50", p50Of, 1),
		r.latencyMark(8_000, true, "p99", p99Of, 10),
		r.latencyMark(40_000, false, "p99", p99Of, 20),
		r.latencyMark(40_000, true, "p99", p99Of, 20),
		Mark{What: "peak RSS of a worker", Value: Median(r.rss(oursName)), Limit: 40, Unit: " MiB"},
		Mark{What: "client CPU per 100,000 messages, end to end", Value: client, Limit: 1.2, Unit: " s"},
	)
}

func (r *Run) latencyMark(rate int, aof bool, name string, figure func(Sample) float64, most float64) Mark {
	found := r.Find(oursName, Latency(rate), aof)
	m := Mark{What: fmt.Sprintf("%s %s, %s", name, Latency(rate), persistenceWords(aof)), Limit: most, Unit: " ms", Value: math.NaN()}
	if found == nil {
		return m
	}
	if ok, why := found.Sustained(); !ok {
		m.Fails = "not sustained: " + why
		return m
	}
	m.Value = Median(found.held().Of(figure))
	return m
}

// held are the samples that sustained their rate.
func (r *Result) held() *Result {
	held := *r
	held.Samples = slices.DeleteFunc(slices.Clone(r.Samples), func(s Sample) bool { return s.NotSustained != "" })
	return &held
}
