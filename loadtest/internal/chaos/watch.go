package chaos

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/oracle"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
)

// lookEvery is how often journals and server are looked at while a run goes on.
const lookEvery = time.Second

// watch follows a run, for the progress line and the plots.
type watch struct {
	run      *run
	follower *journal.Follower
	handled  [][]uint64 // by group, a bit for each message that was handled
	gauge    *gauge
	cancel   context.CancelFunc
	done     chan struct{}

	mu       sync.Mutex
	name     string // of the phase
	ended    journal.Totals
	repeated int64
	rate     float64
	depth    oracle.Depth
	seen     bool // the server answered when it was last asked
	memory   float64
	pid      int // of the server, if it is our own
	errs     []string
}

func startWatch(r *run) *watch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{run: r, follower: journal.Follow(r.opts.Dir), gauge: r.gauge(), cancel: cancel, done: make(chan struct{}), name: "publish"}
	for range r.opts.Groups {
		w.handled = append(w.handled, make([]uint64, (r.opts.Messages+63)/64))
	}
	w.follower.Each = w.record
	go func() {
		defer close(w.done)
		_ = supervisor.Every(ctx, lookEvery, w.look) // it ends with ctx
		w.gauge.close()
	}()
	return w
}

// stop ends the watching, after a last look at the journals.
func (w *watch) stop() {
	w.cancel()
	<-w.done
	w.poll()
}

func (w *watch) look(ctx context.Context) error {
	before := w.ended.OK
	w.poll()
	depth, info, err := w.gauge.state(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rate = float64(w.ended.OK-before) / lookEvery.Seconds()
	if w.seen = err == nil; err != nil {
		return nil // the server is down, and comes back
	}
	w.depth = depth
	w.memory, _ = strconv.ParseFloat(info["used_memory"], 64)
	if w.run.opts.Own != nil {
		w.pid, _ = strconv.Atoi(info["process_id"])
	}
	return nil
}

// poll reads what the journals have got.
func (w *watch) poll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	totals, err := w.follower.Poll()
	w.ended = totals
	if err != nil {
		w.errs = append(w.errs, err.Error())
	}
}

// record counts what was handled once too often. Called by poll.
func (w *watch) record(r *journal.Record) {
	if r.Kind != journal.OK || int(r.Group) >= len(w.handled) || r.Seq < 0 || r.Seq >= w.run.opts.Messages {
		return
	}
	word, bit := &w.handled[r.Group][r.Seq/64], uint64(1)<<(r.Seq%64)
	if *word&bit != 0 {
		w.repeated++
	}
	*word |= bit
}

func (w *watch) phase(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.name = name
}

func (w *watch) problem(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err.Error())
}

func (w *watch) problems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errs
}

func (w *watch) progress() report.Progress {
	kills := fault.NewLog(w.run.workers.Events()).Count(fault.Kill)
	w.mu.Lock()
	defer w.mu.Unlock()
	return report.Progress{
		Phase: w.name, Rate: w.rate, Published: w.run.producer.Counts().Acknowledged, Wanted: int64(w.run.opts.Messages),
		Handled: w.ended.OK, Dead: w.depth.Dead, Kills: int64(kills), Duplicates: w.repeated, Backlog: w.depth.Backlog(),
	}
}

// Titles of plots and names of series that the checks of a soak look for.
const (
	plotResident   = "resident memory" // as report.MemoryProbe calls it
	plotMemory     = "memory of Redis"
	seriesMemory   = "used_memory"
	plotGoroutines = "goroutines of workers"
	plotConsumers  = "consumers"
)

func (w *watch) probes() []report.Probe {
	return []report.Probe{
		report.RateProbe("messages per second", "messages/s", "published", func() int64 { return w.run.producer.Counts().Acknowledged }),
		report.GaugeProbe("messages per second", "messages/s", "handled", func() (float64, bool) { return w.handledRate(), true }),
		report.MemoryProbe(w.pids),
		w.goroutines,
		w.state,
	}
}

func (w *watch) handledRate() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rate
}

func (w *watch) pids() map[string]int {
	pids := map[string]int{}
	for name, seen := range w.run.workers.Seen() {
		pids[name] = seen.PID
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pid > 0 && w.seen {
		pids["Redis"] = w.pid
	}
	return pids
}

func (w *watch) goroutines(context.Context) []report.Reading {
	var out []report.Reading
	seen := w.run.workers.Seen()
	for i := range w.run.opts.Workers {
		name := supervisor.Name(i)
		if n := seen[name].Status.Goroutines; n > 0 {
			out = append(out, report.Reading{Plot: plotGoroutines, Unit: "goroutines", Series: name, V: float64(n)})
		}
	}
	return out
}

func (w *watch) state(context.Context) []report.Reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.seen {
		return nil
	}
	d := &w.depth
	return []report.Reading{
		{Plot: plotMemory, Unit: "bytes", Series: seriesMemory, V: w.memory},
		{Plot: plotConsumers, Unit: "consumers", Series: "all groups", V: float64(d.Consumers)},
		{Plot: "backlog", Unit: "messages", Series: "undelivered", V: float64(d.Undelivered)},
		{Plot: "backlog", Unit: "messages", Series: "held by workers", V: float64(d.Pending)},
		{Plot: "backlog", Unit: "messages", Series: "retry stream", V: float64(d.Retry)},
		{Plot: "backlog", Unit: "messages", Series: "backoff", V: float64(d.Delayed)},
		{Plot: "entries of the queue's stream", Unit: "entries", Series: "length", V: float64(d.Length)},
	}
}
