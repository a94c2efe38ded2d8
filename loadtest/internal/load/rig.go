package load

import (
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

// Options say what is measured, and on what.
type Options struct {
	// Server is the Redis server.
	Server resp.Options
	// Command is the program of a worker process with its arguments, Env is added to its environment.
	Command, Env []string
	// Worker are the options of each; queue, groups and journal are set here.
	Worker worker.Options
	// Dir is for journals and lists of outcomes.
	Dir string
	// Body is the size of the bodies in bytes.
	Body int

	// Connections publish, Workers processes consume, where these are not swept.
	Connections, Workers int
	// Rate is that of the end-to-end phase, in messages per second. 0: as fast as possible.
	Rate float64
	// Duration is that of each phase that publishes.
	Duration time.Duration
	// Messages are drained in a phase that drains.
	Messages int
}

// Rig is what the phases of a run have in common. Its methods may be called from several goroutines.
type Rig struct {
	opts Options

	mu       sync.Mutex
	phases   int
	progress report.Progress
	tally    Tally
	workers  *supervisor.Workers // those of the current phase
}

// NewRig prepares a run.
func NewRig(o Options) *Rig { return &Rig{opts: o} }

// Tally is what became of messages that were published for workers.
type Tally struct {
	// Acknowledged is how many publishes were, Handled is how many of these were handled.
	Acknowledged, Handled int64
	// Repeated counts handlers that ended well after the first one of their message.
	Repeated int64
	// Refused and Unknown are publishes without an acknowledgement.
	Refused, Unknown int64
}

// Tally returns that of all phases so far.
func (r *Rig) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// Progress is how far the current phase has come.
func (r *Rig) Progress() report.Progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// PIDs returns the workers' processes by name.
func (r *Rig) PIDs() map[string]int {
	r.mu.Lock()
	workers := r.workers
	r.mu.Unlock()
	pids := make(map[string]int)
	if workers != nil {
		for name, seen := range workers.Seen() {
			pids[name] = seen.PID
		}
	}
	return pids
}

// log is where the workers write.
func (r *Rig) log() string { return filepath.Join(r.opts.Dir, "workers.log") }

// logEnd is the end of what they wrote, for an error; the file itself does not outlive the run.
func (r *Rig) logEnd() string {
	const most = 2 << 10
	text, err := os.ReadFile(r.log())
	if err != nil || len(text) == 0 {
		return ""
	}
	return ":\n" + string(text[max(0, len(text)-most):])
}

func (r *Rig) begin(title string) (number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases++
	r.progress = report.Progress{Phase: title, Dead: -1, Kills: -1, Duplicates: -1}
	return r.phases
}

func (r *Rig) show(change func(*report.Progress)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.progress)
}

func (r *Rig) hire(workers *supervisor.Workers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.workers = workers
}

func (r *Rig) add(t Tally) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Acknowledged += t.Acknowledged
	r.tally.Handled += t.Handled
	r.tally.Repeated += t.Repeated
	r.tally.Refused += t.Refused
	r.tally.Unknown += t.Unknown
}
