// Package report turns what was measured into tables, a page, a plot and a verdict. It runs nothing.
package report

import (
	"fmt"
	"time"
)

// Kind of a system in the comparison.
type Kind string

// Kinds.
const (
	Ours    Kind = "ours"
	Peer    Kind = "peer"
	StandIn Kind = "stand-in" // for a system that is not there
	Ceiling Kind = "ceiling"  // no queue: what client library and server allow
)

// System is one row of the comparison.
type System struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Kind     Kind   `json:"kind"`
	Version  string `json:"version"`
	Settings string `json:"settings"`
}

// Measure names what a phase measures.
type Measure string

// Measures. RawXADD is redis-benchmark's and has no worker.
const (
	Publish64  Measure = "publish, 64 callers"
	Publish256 Measure = "publish, 256 callers"
	Drain1     Measure = "drain, 1 process"
	Drain2     Measure = "drain, 2 processes"
	EndToEnd   Measure = "end to end"
	RawXADD    Measure = "redis-benchmark XADD"
)

// Throughputs are the measures at full speed, in the order in which they run.
var Throughputs = []Measure{Publish64, Publish256, Drain1, Drain2, EndToEnd}

// Rates are those at which latency is measured, in messages per second.
var Rates = []int{2_000, 8_000, 40_000}

// Latency is the measure at a fixed rate.
func Latency(rate int) Measure { return Measure(fmt.Sprintf("latency at %d/s", rate)) }

// Sample is one run of a phase. Figures that it does not have are 0.
type Sample struct {
	Messages  int     `json:"messages"`
	Rate      float64 `json:"rate"`                 // messages per second
	RedisCPU  float64 `json:"redis_cpu_us"`         // microseconds per message, all threads of the server
	ClientCPU float64 `json:"client_cpu_us"`        // the same of all producers and workers
	WorkerRSS float64 `json:"worker_rss,omitempty"` // MiB, the peak of the larger worker
	// Milliseconds.
	P50  float64 `json:"p50,omitempty"`
	P99  float64 `json:"p99,omitempty"`
	P999 float64 `json:"p999,omitempty"`
	// NotSustained says why the fixed rate was not held; empty: it was.
	NotSustained string `json:"not_sustained,omitempty"`
}

// Result is all samples of one system in one phase.
type Result struct {
	System  string   `json:"system"`
	Measure Measure  `json:"measure"`
	AOF     bool     `json:"aof"` // appendfsync everysec
	Samples []Sample `json:"samples"`
}

// Run is everything that one run measured.
type Run struct {
	Date     time.Time `json:"date"`
	Machine  []string  `json:"machine"`
	Rounds   int       `json:"rounds"`
	Length   string    `json:"length"`   // of a phase at full speed, about
	PaceFor  string    `json:"pace_for"` // of a phase at a fixed rate
	Took     string    `json:"took"`
	Busy     string    `json:"busy,omitempty"`    // what says that the machine did other work; empty: nothing
	Missing  []string  `json:"missing,omitempty"` // what could not be measured, and why
	Systems  []System  `json:"systems"`
	Results  []*Result `json:"results"`
	complete map[key]*Result
}

type key struct {
	system  string
	measure Measure
	aof     bool
}

// Add keeps a sample.
func (r *Run) Add(system string, m Measure, aof bool, s Sample) {
	found := r.Find(system, m, aof)
	if found == nil {
		found = &Result{System: system, Measure: m, AOF: aof}
		r.Results = append(r.Results, found)
		r.complete[key{system, m, aof}] = found
	}
	found.Samples = append(found.Samples, s)
}

// Find returns nil for what was not measured.
func (r *Run) Find(system string, m Measure, aof bool) *Result {
	if r.complete == nil {
		r.complete = map[key]*Result{}
		for _, result := range r.Results {
			r.complete[key{result.System, result.Measure, result.AOF}] = result
		}
	}
	return r.complete[key{system, m, aof}]
}

// System returns the row with this name.
func (r *Run) System(name string) (System, bool) {
	for _, s := range r.Systems {
		if s.Name == name {
			return s, true
		}
	}
	return System{}, false
}

// Of returns one figure of every sample.
func (r *Result) Of(figure func(Sample) float64) []float64 {
	if r == nil {
		return nil
	}
	values := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		values[i] = figure(s)
	}
	return values
}

// Sustained reports whether most samples held their rate, and if not why the first of the others did not.
func (r *Result) Sustained() (ok bool, why string) {
	if r == nil {
		return false, "not measured"
	}
	failed := 0
	for _, s := range r.Samples {
		if s.NotSustained != "" {
			failed++
			if why == "" {
				why = s.NotSustained
			}
		}
	}
	return 2*failed < len(r.Samples), why
}

// Figures of a sample.
func rateOf(s Sample) float64      { return s.Rate }
func redisCPUOf(s Sample) float64  { return s.RedisCPU }
func clientCPUOf(s Sample) float64 { return s.ClientCPU }
func rssOf(s Sample) float64       { return s.WorkerRSS }
func p50Of(s Sample) float64       { return s.P50 }
func p99Of(s Sample) float64       { return s.P99 }
func p999Of(s Sample) float64      { return s.P999 }
