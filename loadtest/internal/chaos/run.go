package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/oracle"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

const (
	// patience is how long workers may take to end in good order.
	patience = 30 * time.Second
	// depthEvery is how often it is looked whether everything is done.
	depthEvery = 200 * time.Millisecond
)

// run is one run under way.
type run struct {
	opts     Options
	server   resp.Options
	producer *producer.Producer
	workers  *supervisor.Workers
	watch    *watch
	pulse    *supervisor.Pulse

	published time.Duration // how long publishing took
	hurt      time.Duration // how long faults were made
	drained   bool
	problems  []string // what went wrong with the run itself
}

// Run does it all. When ctx ends it stops, and the report says what there is. With an error there is no report.
func Run(ctx context.Context, o Options) (*report.Report, error) {
	r := run{opts: o}
	began := time.Now()
	rep := &report.Report{Command: o.Name, Started: began, Seed: o.Plan.Seed, Settings: o.Settings, Machine: report.ThisMachine(ctx)}
	var err error
	if r.server, err = o.server(); err != nil {
		return nil, err
	}
	if err := rep.Machine.AskServer(ctx, r.server); err != nil {
		return nil, err
	}
	if err := r.play(ctx, rep); err != nil {
		return nil, err
	}
	if err := r.noteFaults(); err != nil {
		r.problems = append(r.problems, err.Error())
	}
	// The run is over, also when it was interrupted: what follows has its own deadlines.
	verdict, err := oracle.Judge(context.WithoutCancel(ctx), r.judge())
	if err != nil {
		return nil, err
	}
	r.fill(rep, verdict)
	rep.Took = time.Since(began)
	return rep, nil
}

// play publishes, consumes and does damage, until nothing is left. Afterwards no worker runs.
func (r *run) play(ctx context.Context, rep *report.Report) (err error) {
	o := &r.opts
	if r.producer, err = producer.New(producer.Options{
		Server: r.server, KeyPrefix: o.Keys.Prefix, Queue: o.Keys.Queue, Messages: o.Messages, Rate: o.Rate, Body: o.Body,
		Connections: o.Connections, AckFile: r.ackFile(),
	}); err != nil {
		return err
	}
	if r.workers, err = supervisor.StartWorkers(supervisor.Options{
		Command: o.Command, Env: o.Env, Workers: o.Workers, Spared: o.Spared, Worker: r.worker(),
		Log: filepath.Join(o.Dir, "workers.log"), Seed: o.Plan.Seed,
	}); err != nil {
		return err
	}
	ctx, giveUp := context.WithCancel(ctx)
	var hope sync.WaitGroup
	hope.Go(func() {
		select {
		case <-r.workers.Hopeless():
			giveUp()
		case <-ctx.Done():
		}
	})
	defer hope.Wait()
	defer giveUp()
	r.pulse = supervisor.StartPulse(r.server)
	defer r.pulse.Stop()
	r.watch = startWatch(r)
	live := report.StartLive(o.Progress, r.watch.progress)
	sampler := report.StartSampler(context.WithoutCancel(ctx), 0, r.watch.probes()...)

	hurt, heal := context.WithCancel(ctx)
	var faults sync.WaitGroup
	r.startFaults(hurt, &faults)
	published := time.Now()
	if err := r.producer.Run(ctx); err != nil {
		r.problems = append(r.problems, err.Error())
	}
	r.published = time.Since(published)
	r.watch.phase("drain")
	r.drained = r.drain(ctx)
	r.hurt = time.Since(published)
	heal()
	faults.Wait()
	r.watch.phase("stop")
	if err := r.workers.Stop(patience); err != nil {
		r.problems = append(r.problems, err.Error())
	}
	r.watch.stop()
	live.Stop()
	rep.Plots = sampler.Stop()
	return nil
}

func (r *run) ackFile() string { return filepath.Join(r.opts.Dir, "outcomes") }

func (r *run) worker() worker.Options {
	o := &r.opts
	return worker.Options{
		URL: o.URL, KeyPrefix: o.Keys.Prefix, Queue: o.Keys.Queue, Groups: o.Groups, Concurrency: o.Concurrency, Prefetch: o.Prefetch,
		Visibility: o.Visibility, MaxLostLeases: o.maxLost(), Dedupe: o.Dedupe, Backoff: o.Backoff, Handler: o.Handler,
		Plan: o.Plan, Journal: o.Dir,
	}
}

// startFaults begins each kind of fault, until ctx ends.
func (r *run) startFaults(ctx context.Context, wg *sync.WaitGroup) {
	o := &r.opts
	every := func(interval time.Duration, f func(context.Context) error) {
		wg.Go(func() {
			if err := supervisor.Every(ctx, interval, f); err != nil {
				r.watch.problem(err)
			}
		})
	}
	every(o.KillEvery, func(context.Context) error {
		r.workers.Kill()
		return nil
	})
	every(o.StopEvery, func(ctx context.Context) error {
		r.workers.StopFor(ctx, o.stopFor())
		return nil
	})
	if o.Own != nil {
		every(o.CrashEvery, func(context.Context) error { return o.Own.Crash() })
	}
}

// drain waits until nothing is left but dead letters, and says whether that came in time. The faults go on meanwhile.
func (r *run) drain(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, r.opts.Drain)
	defer cancel()
	g := r.gauge()
	defer g.close()
	drained := errors.New("drained")
	err := supervisor.Every(ctx, depthEvery, func(ctx context.Context) error {
		// A server that is down comes back.
		if depth, err := g.depth(ctx); err == nil && depth.Backlog() == 0 {
			return drained
		}
		return nil
	})
	return errors.Is(err, drained)
}

func (r *run) gauge() *gauge {
	return &gauge{server: r.server, keys: r.opts.Keys, groups: r.opts.Groups}
}

func (r *run) events() []fault.Event {
	events := append(r.workers.Events(), r.pulse.Events()...)
	if r.opts.Own != nil {
		events = append(events, r.opts.Own.Events()...)
	}
	return events
}

// noteFaults keeps the faults beside the journals, for whoever looks into those.
func (r *run) noteFaults() error {
	var text bytes.Buffer
	if err := fault.Write(&text, r.events()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.opts.Dir, "faults"), text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("note the faults: %w", err)
	}
	return nil
}

func (r *run) judge() oracle.Options {
	o := &r.opts
	return oracle.Options{
		Server: r.server, Keys: o.Keys, Groups: o.Groups, Messages: o.Messages, Plan: o.Plan, MaxLostLeases: o.maxLost(),
		Lease: o.Visibility, Workers: o.Workers, Held: o.held(), Journal: o.Dir, AckFile: r.ackFile(), Faults: r.events(), Window: o.Window, Drained: r.drained,
	}
}
