package report

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// lowest and highest bound what a histogram tells apart; what lies outside counts as the nearest of them.
	lowest  = time.Microsecond
	highest = time.Hour
	// digits that stay exact in each value.
	digits = 3
)

// Histogram gathers durations in a fixed amount of memory, some 300 KiB, each with an error below 0.1 %. Make it with
// [NewHistogram]. It is safe for concurrent use.
type Histogram struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram
	max  time.Duration
}

// NewHistogram returns an empty histogram from 1 µs to one hour.
func NewHistogram() *Histogram {
	return &Histogram{hist: hdrhistogram.New(lowest.Nanoseconds(), highest.Nanoseconds(), digits)}
}

// Record adds one duration. A negative one, from a clock that was set back, counts as zero; one above an hour counts as
// an hour in the percentiles and as itself in the maximum.
func (h *Histogram) Record(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.max = max(h.max, d)
	// Inside the bounds it cannot fail.
	_ = h.hist.RecordValue(min(max(d, 0), highest).Nanoseconds())
}

// N is how many were recorded.
func (h *Histogram) N() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hist.TotalCount()
}

// Latency returns the percentiles of what was recorded, all zero when that is nothing. A percentile is a duration that
// at least so many in a hundred did not exceed; none is above the maximum.
func (h *Histogram) Latency(name string) Latency {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.hist.TotalCount()
	if n == 0 {
		return Latency{Name: name}
	}
	at := func(perMille int64) time.Duration {
		// The library rounds to the nearest rank, which may be one too low: it is asked for a rank exactly.
		rank := (perMille*n + 999) / 1000
		return min(time.Duration(h.hist.ValueAtPercentile(100*float64(rank)/float64(n))), h.max)
	}
	return Latency{Name: name, N: n, P50: at(500), P90: at(900), P99: at(990), P999: at(999), Max: h.max}
}

// Reset forgets everything.
func (h *Histogram) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hist.Reset()
	h.max = 0
}
