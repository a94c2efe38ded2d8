// Package supervisor starts the worker processes and the server of a load test, and does to them what happens to
// processes: it kills them, stops them for a while, and starts them again.
package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

// Options say which workers there are.
type Options struct {
	// Command is the program of a worker and its arguments, which runs [worker.Process].
	Command []string
	// Env is added to the environment.
	Env []string
	// Workers is how many run at once.
	Workers int
	// Spared are never killed nor stopped: the first so many.
	Spared int
	// Worker are the options of each; Run is set here.
	Worker worker.Options
	// Log is where the workers' own logs are appended.
	Log string
	// Seed is that of the choice of victims.
	Seed uint64
}

// Workers are a number of worker processes, each of which is replaced when it ends. Processes are numbered from 1, in the
// order of their starts.
type Workers struct {
	opts Options
	log  *os.File

	mu       sync.Mutex
	random   *rand.Rand
	slots    []*process
	runs     int
	events   []fault.Event
	crashes  []string
	stopping bool
	wg       sync.WaitGroup
	hopeless chan struct{}
	despair  sync.Once
}

// process is one run. Its worker's slot is where it stands in Workers.slots.
type process struct {
	run     int
	cmd     *exec.Cmd
	input   io.Closer
	done    chan struct{} // closed when it was waited for
	killed  bool          // by us; guarded by Workers.mu
	stopped bool
	status  worker.Status
	err     error // how it ended, valid after done
}

// StartWorkers starts all of them.
func StartWorkers(o Options) (*Workers, error) {
	log, err := os.OpenFile(o.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of the workers: %w", err)
	}
	w := &Workers{opts: o, log: log, random: rand.New(rand.NewPCG(o.Seed, 0)), slots: make([]*process, o.Workers), hopeless: make(chan struct{})}
	for slot := range w.slots {
		if err := w.start(slot); err != nil {
			return nil, errors.Join(err, w.Stop(0))
		}
	}
	return w, nil
}

// maxCrashes is when workers that end by themselves are not replaced any more.
const maxCrashes = 20

// start puts a new process into a slot.
func (w *Workers) start(slot int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopping {
		return nil
	}
	w.runs++
	p := &process{run: w.runs, done: make(chan struct{})}
	p.cmd = exec.Command(w.opts.Command[0], w.opts.Command[1:]...) //nolint:noctx // a worker ends with its input, or by a signal
	p.cmd.Env = append(os.Environ(), w.opts.Env...)
	p.cmd.Stderr = w.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal is for the supervisor
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start worker %d: %w", p.run, err)
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start worker %d: %w", p.run, err)
	}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start worker %d: %w", p.run, err)
	}
	p.input = input
	w.slots[slot] = p
	w.wg.Go(func() { w.attend(slot, p, output) })
	o := w.opts.Worker
	o.Run = p.run
	if err := json.NewEncoder(input).Encode(o); err != nil {
		return fmt.Errorf("tell worker %d what to do: %w", p.run, err)
	}
	return nil
}

// attend follows a process to its end, and replaces it.
func (w *Workers) attend(slot int, p *process, output io.Reader) {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var s worker.Status
		if json.Unmarshal(lines.Bytes(), &s) == nil {
			w.mu.Lock()
			p.status = s
			w.mu.Unlock()
		}
	}
	p.err = p.cmd.Wait()
	close(p.done)
	w.mu.Lock()
	// One that had ended by itself just before it was to be killed counts too.
	byKill := p.killed && killedBySignal(p.cmd.ProcessState)
	unasked := !byKill && (!w.stopping || p.err != nil)
	if unasked {
		w.crashes = append(w.crashes, fmt.Sprintf("worker %d ended by itself: %v", p.run, p.cmd.ProcessState))
	}
	hopeless := len(w.crashes) >= maxCrashes
	w.mu.Unlock()
	_ = p.input.Close() // a process that has ended does not read it
	if hopeless {
		w.despair.Do(func() { close(w.hopeless) })
		return
	}
	if err := w.start(slot); err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.crashes = append(w.crashes, err.Error())
	}
}

func killedBySignal(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// victim returns a process that runs, or nil when there is none to choose.
func (w *Workers) victim() *process {
	var running []*process
	for _, p := range w.slots[min(w.opts.Spared, len(w.slots)):] {
		if p != nil && !p.killed && !p.stopped {
			running = append(running, p)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return running[w.random.IntN(len(running))]
}

// Kill ends one worker at once, waits for its end, and has it replaced.
func (w *Workers) Kill() {
	w.mu.Lock()
	p := w.victim()
	if p == nil || w.stopping {
		w.mu.Unlock()
		return
	}
	p.killed = true
	from := time.Now()
	_ = p.cmd.Process.Kill() // it may just have ended by itself
	w.mu.Unlock()
	<-p.done
	w.note(fault.Event{Kind: fault.Kill, Run: p.run, From: from, To: time.Now()})
}

// StopFor has one worker stand still for a while, or until ctx ends.
func (w *Workers) StopFor(ctx context.Context, d time.Duration) {
	w.mu.Lock()
	p := w.victim()
	if p == nil || w.stopping {
		w.mu.Unlock()
		return
	}
	p.stopped = true
	from := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
	w.mu.Unlock()
	select {
	case <-time.After(d):
	case <-p.done:
	case <-ctx.Done():
	}
	w.mu.Lock()
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	p.stopped = false
	w.mu.Unlock()
	w.note(fault.Event{Kind: fault.Stop, Run: p.run, From: from, To: time.Now()})
}

func (w *Workers) note(e fault.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// Events returns the faults so far, in the order of their ends.
func (w *Workers) Events() []fault.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]fault.Event(nil), w.events...)
}

// Hopeless is closed when so many workers ended by themselves that they are not replaced any more.
func (w *Workers) Hopeless() <-chan struct{} { return w.hopeless }

// Crashes returns what went wrong with workers that nobody killed.
func (w *Workers) Crashes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.crashes...)
}

// Seen is what is known of a worker that runs.
type Seen struct {
	PID    int
	Spared bool
	Status worker.Status
}

// Name is that of the worker in a slot, from 0: "worker 1" and so on.
func Name(slot int) string { return "worker " + strconv.Itoa(slot+1) }

// Seen returns the workers that run, by their name.
func (w *Workers) Seen() map[string]Seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]Seen{}
	for slot, p := range w.slots {
		if p != nil {
			seen[Name(slot)] = Seen{p.cmd.Process.Pid, slot < w.opts.Spared, p.status}
		}
	}
	return seen
}

// Stop asks all workers to end in good order, kills those that take longer than patience, and returns when all have ended. Safe
// twice.
func (w *Workers) Stop(patience time.Duration) error {
	w.mu.Lock()
	first := !w.stopping
	w.stopping = true
	slots := append([]*process(nil), w.slots...)
	for _, p := range slots {
		if p != nil {
			_ = p.cmd.Process.Signal(syscall.SIGCONT) // nothing to a process that runs
			_ = p.input.Close()
		}
	}
	w.mu.Unlock()
	var errs []error
	deadline := time.After(patience)
	for _, p := range slots {
		if p == nil {
			continue
		}
		select {
		case <-p.done:
			continue
		case <-deadline:
		}
		w.mu.Lock()
		p.killed = true
		w.mu.Unlock()
		_ = p.cmd.Process.Kill()
		<-p.done
		errs = append(errs, fmt.Errorf("worker %d did not end within %v", p.run, patience))
		deadline = time.After(0)
	}
	w.wg.Wait()
	if first {
		errs = append(errs, w.log.Close())
	}
	return errors.Join(errs...)
}
