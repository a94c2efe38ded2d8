package xstreamq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

var _ = func() bool {
	processes["lease-worker"] = runLeaseWorker
	return true
}()

// leaseWorkerArgs say how a worker process works.
type leaseWorkerArgs struct {
	URL, Prefix string
	Name        string // in its notes
	Options     leaseWorkerOptions
}

// leaseWorkerOptions are those of SubscribeOptions that can be sent to a process.
type leaseWorkerOptions struct {
	Concurrency, Prefetch int
	VisibilityTimeout     time.Duration
	NoVisibilityTimeout   bool
	MaxRetries            int
	MaxLostLeases         int
	Dedupe                time.Duration
	Backoff               time.Duration // Initial and Max
}

func (o leaseWorkerOptions) options() xstreamq.SubscribeOptions {
	return xstreamq.SubscribeOptions{
		Concurrency: o.Concurrency, Prefetch: o.Prefetch,
		VisibilityTimeout: o.VisibilityTimeout, NoVisibilityTimeout: o.NoVisibilityTimeout,
		MaxRetries: o.MaxRetries, MaxLostLeases: o.MaxLostLeases, Dedupe: o.Dedupe,
		Backoff: xstreamq.Backoff{Initial: o.Backoff, Max: o.Backoff},
	}
}

// leaseNote is one line of the journal that worker processes keep in Redis, where it outlives them.
type leaseNote struct {
	Worker     string
	What       string // "begin", "cancelled", or an outcome that was settled
	Body       string `json:",omitempty"`
	Retries    int    `json:",omitempty"`
	LostLeases int    `json:",omitempty"`
	Cause      string `json:",omitempty"`
}

// worker starts a worker process.
func (r *leaseRig) worker(name string, o leaseWorkerOptions) *process {
	r.t.Helper()
	args, err := json.Marshal(leaseWorkerArgs{URL: r.url, Prefix: r.prefix, Name: name, Options: o})
	if err != nil {
		r.t.Fatal(err)
	}
	return spawn(r.t, "lease-worker", string(args))
}

// journal returns what worker processes noted so far.
func (r *leaseRig) journal() []leaseNote {
	r.t.Helper()
	reply := r.ask("LRANGE", r.prefix+"journal", "0", "-1")
	lines, err := reply.AsStrSlice()
	if err != nil {
		r.t.Fatal(err)
	}
	notes := make([]leaseNote, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal([]byte(line), &notes[i]); err != nil {
			r.t.Fatal(err)
		}
	}
	return notes
}

// noted waits for a note, and returns the first one of that kind.
func (r *leaseRig) noted(worker, what string) leaseNote {
	r.t.Helper()
	var found leaseNote
	redistest.WaitFor(r.t, leasePatience, "the note of worker "+worker+": "+what, func() bool {
		for _, n := range r.journal() {
			if n.Worker == worker && n.What == what {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

// answer ends the handler of a "hold" message in a worker process: "ok" or "fail".
func (r *leaseRig) answer(worker, verdict string) {
	r.t.Helper()
	r.ask("RPUSH", r.prefix+"answer:"+worker, verdict)
}

// freeze sends SIGSTOP and returns when the process stands still.
func (p *process) freeze() error {
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case status.Stopped():
			return nil
		default:
			return errors.New("the process ended instead of standing still")
		}
	}
}

// thaw lets a frozen process go on.
func (p *process) thaw() error { return p.Process.Signal(syscall.SIGCONT) }

// kill ends the process as kill -9 does, and returns when it is gone.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// leaseWorker is what runs in a worker process. Its own connection keeps the journal and brings the answers.
type leaseWorker struct {
	args leaseWorkerArgs
	side rueidis.Client
}

func runLeaseWorker(args []string) int {
	w := &leaseWorker{}
	if err := w.run(args[0]); err != nil {
		fmt.Fprintln(os.Stderr, "lease worker:", err)
		return 1
	}
	return 0
}

func (w *leaseWorker) run(args string) error {
	if err := json.Unmarshal([]byte(args), &w.args); err != nil {
		return err
	}
	var err error
	if w.side, err = redistest.Open(w.args.URL); err != nil {
		return err
	}
	defer w.side.Close()
	c, err := xstreamq.Open(w.args.URL, xstreamq.Config{KeyPrefix: w.args.Prefix, Observer: xstreamq.Observer{
		Settled: func(s xstreamq.Settled) { w.note(leaseNote{What: string(s.Outcome)}) },
	}})
	if err != nil {
		return err
	}
	defer c.Close()
	q, err := xstreamq.NewQueue(c, "q", xstreamq.WithCodec[string](xstreamq.String{}))
	if err != nil {
		return err
	}
	if _, err := q.Subscribe("g", w.handle, w.args.Options.options()); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	return c.Run(ctx)
}

func (w *leaseWorker) note(n leaseNote) {
	n.Worker = w.args.Name
	line, err := json.Marshal(n)
	if err == nil {
		err = w.side.Do(context.Background(), w.side.B().Rpush().Key(w.args.Prefix+"journal").Element(string(line)).Build()).Error()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "lease worker: journal:", err)
	}
}

// handle does what the first word of the body says.
func (w *leaseWorker) handle(ctx context.Context, m *xstreamq.Message[string]) error {
	w.note(leaseNote{What: "begin", Body: m.Body, Retries: m.Retries, LostLeases: m.LostLeases})
	verb, _, _ := strings.Cut(m.Body, " ")
	switch verb {
	case "exit":
		os.Exit(3)
	case "fail":
		return errors.New("it always fails")
	case "hold":
		return w.hold(ctx)
	case "work":
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// hold waits to be told how to end, and notes when its context ends before.
func (w *leaseWorker) hold(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		w.note(leaseNote{What: "cancelled", Cause: context.Cause(ctx).Error()})
	})
	defer stop()
	answer, err := w.side.Do(context.WithoutCancel(ctx), w.side.B().Blpop().Key(w.args.Prefix+"answer:"+w.args.Name).Timeout(0).Build()).AsStrSlice()
	if err != nil {
		return err
	}
	if answer[1] == "fail" {
		return errors.New("told to fail")
	}
	return nil
}
