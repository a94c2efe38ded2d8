package report

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/shirou/gopsutil/v4/process"
)

const (
	// DefaultSampling is how often a sampler reads.
	DefaultSampling = time.Second
	// mostSamples is reached at most: then every second one goes, and the sampler reads half as often. It is odd, so that
	// the newest stays and the distances are equal.
	mostSamples = 1201
)

// Reading is one value, for the series of a plot.
type Reading struct {
	Plot, Unit, Series string
	V                  float64
}

// Probe reads some values. It must return soon after its context ends. A value that it leaves out is a gap.
type Probe func(ctx context.Context) []Reading

// Sampler reads probes at an interval and keeps what they returned, in bounded memory.
type Sampler struct {
	probes []Probe
	began  time.Time
	every  time.Duration
	most   int

	cancel context.CancelFunc
	done   chan struct{}
	mu     sync.Mutex
	// samples are ordered by time.
	samples []moment
}

type moment struct {
	at       time.Duration
	readings []Reading
}

// StartSampler reads all probes now and then every interval; 0 or less is [DefaultSampling]. They run one after the other,
// in one goroutine, which ends with [Sampler.Stop] or ctx.
func StartSampler(ctx context.Context, every time.Duration, probes ...Probe) *Sampler {
	if every <= 0 {
		every = DefaultSampling
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Sampler{
		probes: probes, began: time.Now(), every: every, most: mostSamples,
		cancel: cancel, done: make(chan struct{}),
	}
	go s.run(ctx)
	return s
}

// Stop ends the reading and returns the plots, in the order in which they first occurred.
func (s *Sampler) Stop() []Plot {
	s.cancel()
	<-s.done
	return s.Plots()
}

func (s *Sampler) run(ctx context.Context) {
	defer close(s.done)
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for {
		if s.read(ctx) {
			s.every *= 2
			ticker.Reset(s.every)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// read takes one sample, and says whether there were too many.
func (s *Sampler) read(ctx context.Context) (thinned bool) {
	one := moment{at: time.Since(s.began)}
	for _, probe := range s.probes {
		one.readings = append(one.readings, s.bounded(ctx, probe)...)
	}
	if ctx.Err() != nil {
		return false // a probe that was cut off tells less than there was
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, one)
	if len(s.samples) < s.most {
		return false
	}
	kept := s.samples[:0]
	for i := 0; i < len(s.samples); i += 2 {
		kept = append(kept, s.samples[i])
	}
	clear(s.samples[len(kept):])
	s.samples = kept
	return true
}

// bounded gives a probe as long as one interval, so that a server that is down leaves gaps.
func (s *Sampler) bounded(ctx context.Context, probe Probe) []Reading {
	ctx, cancel := context.WithTimeout(ctx, max(s.every, DefaultSampling))
	defer cancel()
	return probe(ctx)
}

// Plots returns what was read so far.
func (s *Sampler) Plots() []Plot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var plots []Plot
	for _, one := range s.samples {
		for _, r := range one.readings {
			series := r.in(&plots)
			if n := len(series.Points); n > 0 {
				if at := s.after(series.Points[n-1].At); at < one.at {
					series.Points = append(series.Points, Point{At: at, V: math.NaN()})
				}
			}
			series.Points = append(series.Points, Point{At: one.at, V: r.V})
		}
	}
	return plots
}

// after returns the time of the sample that follows the one of a time.
func (s *Sampler) after(at time.Duration) time.Duration {
	i, _ := slices.BinarySearchFunc(s.samples, at+1, func(one moment, at time.Duration) int { return cmp.Compare(one.at, at) })
	return s.samples[i].at
}

// in returns the reading's series among the plots, to which it adds what is missing.
func (r Reading) in(plots *[]Plot) *Series {
	i := slices.IndexFunc(*plots, func(p Plot) bool { return p.Title == r.Plot })
	if i < 0 {
		i = len(*plots)
		*plots = append(*plots, Plot{Title: r.Plot, Unit: r.Unit})
	}
	p := &(*plots)[i]
	j := slices.IndexFunc(p.Series, func(s Series) bool { return s.Name == r.Series })
	if j < 0 {
		j = len(p.Series)
		p.Series = append(p.Series, Series{Name: r.Series})
	}
	return &p.Series[j]
}

// RSS returns the resident memory of a process in bytes, and false when there is no such process.
func RSS(ctx context.Context, pid int) (float64, bool) {
	p, err := process.NewProcessWithContext(ctx, int32(pid))
	if err != nil {
		return 0, false
	}
	memory, err := p.MemoryInfoWithContext(ctx)
	if err != nil || memory.RSS == 0 {
		return 0, false // a zombie has none
	}
	return float64(memory.RSS), true
}

// MemoryProbe reads the memory of processes; pids is asked each time, since processes come and go, and returns them by the
// name of their series.
func MemoryProbe(pids func() map[string]int) Probe {
	return func(ctx context.Context) []Reading {
		var out []Reading
		named := pids()
		names := make([]string, 0, len(named))
		for name := range named {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			if v, ok := RSS(ctx, named[name]); ok {
				out = append(out, Reading{Plot: "resident memory", Unit: "bytes", Series: name, V: v})
			}
		}
		return out
	}
}

// RateProbe turns a counter into its growth per second.
func RateProbe(plot, unit, series string, count func() int64) Probe {
	var before int64
	var at time.Time
	return func(context.Context) []Reading {
		now, n := time.Now(), count()
		defer func() { before, at = n, now }()
		if at.IsZero() {
			return nil
		}
		return []Reading{{Plot: plot, Unit: unit, Series: series, V: float64(n-before) / now.Sub(at).Seconds()}}
	}
}
