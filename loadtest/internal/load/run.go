package load

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/sweep"
)

// What a sweep goes through.
var (
	sweptConnections = []int{1, 4, 16, 64, 256}
	sweptWorkers     = []int{1, 2, 4, 8}
)

const (
	// Rates of a sweep: the first one, the last one that is tried, and how often the gap is halved.
	firstRate, lastRate, refinements = 2000, 2000 << 10, 3
	// slack is the share of a phase's time that a producer may be late.
	slack = 1 - sweep.MinShare
)

// Once measures publishing, draining and the end-to-end latency, once each. With an error it returns what there is.
func (r *Rig) Once(ctx context.Context) (*Results, error) {
	out := &Results{}
	if err := r.publish(ctx, out, r.opts.Connections); err != nil {
		return out, err
	}
	if err := r.drain(ctx, out, r.opts.Workers); err != nil {
		return out, err
	}
	return out, r.carry(ctx, out, r.opts.Rate)
}

// Sweep measures publishing by the number of connections, draining by the number of worker processes, and searches the
// highest rate that is sustained end to end. With an error it returns what there is.
func (r *Rig) Sweep(ctx context.Context) (*Results, error) {
	out := &Results{}
	for _, n := range sweptConnections {
		if err := r.publish(ctx, out, n); err != nil {
			return out, err
		}
	}
	for _, n := range sweptWorkers {
		if err := r.drain(ctx, out, n); err != nil {
			return out, err
		}
	}
	var err error
	out.Sustained, out.Broken, err = sweep.Highest(ctx, firstRate, lastRate, refinements,
		func(ctx context.Context, rate float64) (bool, error) {
			if err := r.carry(ctx, out, rate); err != nil {
				return false, err
			}
			ok, _ := out.Carried[len(out.Carried)-1].Sustained()
			return ok, nil
		})
	return out, err
}

// measure runs f in a phase of its own.
func (r *Rig) measure(ctx context.Context, title string, f func(*phase) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := r.phase(title)
	if err == nil {
		err = errors.Join(f(p), p.end(ctx))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", title, err)
	}
	return nil
}

func (r *Rig) publish(ctx context.Context, out *Results, connections int) error {
	return r.measure(ctx, fmt.Sprintf("publish, connections: %d", connections), func(p *phase) error {
		run, err := p.start(ctx, endless, 0, connections, r.opts.Duration)
		if err != nil {
			return err
		}
		if err := p.wait(ctx, run, func(time.Duration, int64) {}); err != nil {
			return err
		}
		out.Published = append(out.Published, Published{connections, run.Counts().Acknowledged, run.took})
		return nil
	})
}

func (r *Rig) drain(ctx context.Context, out *Results, workers int) error {
	return r.measure(ctx, fmt.Sprintf("drain, worker processes: %d", workers), func(p *phase) error {
		run, err := p.start(ctx, r.opts.Messages, 0, fillConnections, catchUp)
		if err != nil {
			return err
		}
		if err := p.wait(ctx, run, func(time.Duration, int64) {}); err != nil {
			return err
		}
		if err := p.startWorkers(workers); err != nil {
			return err
		}
		if err := p.finish(ctx, run); err != nil {
			return err
		}
		n, took := p.seen.drained()
		out.Drained = append(out.Drained, Drained{workers, n, took})
		return p.settle(run)
	})
}

// fillConnections fill a queue that is to be drained.
const fillConnections = 16

func (r *Rig) carry(ctx context.Context, out *Results, rate float64) error {
	title, messages := "end to end, as fast as possible", endless
	if rate > 0 {
		title, messages = fmt.Sprintf("end to end, %s/s", report.FormatCount(int64(rate))), int(rate*r.opts.Duration.Seconds())
	}
	return r.measure(ctx, title, func(p *phase) error {
		if err := p.startWorkers(r.opts.Workers); err != nil {
			return err
		}
		if err := p.warm(ctx, r.opts.Workers); err != nil {
			return err
		}
		limit := r.opts.Duration
		if rate > 0 {
			limit += time.Duration(slack * float64(limit))
		}
		run, err := p.start(ctx, messages, rate, r.opts.Connections, limit)
		if err != nil {
			return err
		}
		w := sweep.Window{Asked: rate}
		err = p.wait(ctx, run, func(at time.Duration, backlog int64) {
			w.Backlog = append(w.Backlog, sweep.Sample{At: at, Backlog: max(backlog, 0)}) // a handler may be ahead of the acknowledgement
		})
		if err != nil {
			return err
		}
		w.Acked, w.Took = run.Counts().Acknowledged, run.took
		if err := p.finish(ctx, run); err != nil {
			return err
		}
		plots := append(p.seen.plots(w.Took), backlogPlot(w))
		out.Carried = append(out.Carried, Carried{Window: w, Latency: p.seen.all.Latency(title), Plots: plots})
		return p.settle(run)
	})
}

func backlogPlot(w sweep.Window) report.Plot {
	s := report.Series{Name: "backlog"}
	for _, one := range w.Backlog {
		s.Points = append(s.Points, report.Point{At: one.At, V: float64(one.Backlog)})
	}
	return report.Plot{Title: "Backlog", Unit: "messages", Series: []report.Series{s}}
}
