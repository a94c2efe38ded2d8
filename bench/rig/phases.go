package rig

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/bench/peer"
	"github.com/xstreamq/xstreamq/bench/report"
)

const (
	fewCallers  = 64
	manyCallers = 256

	// What a producer at a fixed rate may be late by, and what may be handled after its end, for the rate to count as sustained.
	mostBehind = 100 * time.Millisecond
)

// publish has one producer fill an empty server.
func (r *Rig) publish(ctx context.Context, srv *server, s System, n, callers int) (report.Sample, error) {
	if err := srv.flush(ctx); err != nil {
		return report.Sample{}, err
	}
	p, err := r.startProcess(ctx, s, peer.Producer, srv.URL(), callers)
	if err != nil {
		return report.Sample{}, err
	}
	defer p.end()
	m, err := begin(ctx, srv, n)
	if err != nil {
		return report.Sample{}, err
	}
	e, err := p.publish(ctx, peer.Command{Op: peer.Publish, Messages: n, Callers: callers})
	if err != nil {
		return report.Sample{}, err
	}
	stored, err := srv.count(ctx, s.stored)
	if err != nil {
		return report.Sample{}, err
	}
	if stored != int64(n) {
		return report.Sample{}, fmt.Errorf("%s: the server holds %d messages of %d published", s.Name, stored, n)
	}
	return m.end(ctx, e.First, e.Last, p)
}

func (p *process) publish(ctx context.Context, cmd peer.Command) (peer.Event, error) {
	if err := p.tell(cmd); err != nil {
		return peer.Event{}, err
	}
	return p.await(ctx, peer.Published)
}

// preload fills an empty server.
func (r *Rig) preload(ctx context.Context, srv *server, s System, n int) error {
	_, err := r.publish(ctx, srv, s, n, s.callers(manyCallers))
	return err
}

// drain has workers empty a full server. The clock runs from the first handler until all is
// acknowledged, so that nobody gains by acknowledging late.
func (r *Rig) drain(ctx context.Context, srv *server, s System, n, processes int) (report.Sample, error) {
	if err := r.preload(ctx, srv, s, n); err != nil {
		return report.Sample{}, err
	}
	var workers []*process
	defer func() {
		for _, w := range workers {
			w.end()
		}
	}()
	for range processes {
		w, err := r.startProcess(ctx, s, peer.Worker, srv.URL(), fewCallers)
		if err != nil {
			return report.Sample{}, err
		}
		workers = append(workers, w)
	}
	m, err := begin(ctx, srv, n)
	if err != nil {
		return report.Sample{}, err
	}
	for _, w := range workers {
		if err := w.tell(peer.Command{Op: peer.Work}); err != nil {
			return report.Sample{}, err
		}
	}
	for _, w := range workers {
		if _, err := w.await(ctx, peer.Ready); err != nil {
			return report.Sample{}, err
		}
	}
	if err := awaitHandled(ctx, workers, n); err != nil {
		return report.Sample{}, err
	}
	ended, err := srv.awaitEnded(ctx, s)
	if err != nil {
		return report.Sample{}, err
	}
	sample, err := m.end(ctx, 0, 0, workers...)
	if err != nil {
		return report.Sample{}, err
	}
	done, err := tellAll(ctx, workers, n)
	sample.Rate = perSecond(n, done.First, ended)
	return sample, err
}

// endToEnd has one producer, at full speed or at the rate of cmd, and one worker side by side.
func (r *Rig) endToEnd(ctx context.Context, srv *server, s System, cmd peer.Command) (report.Sample, error) {
	if err := srv.flush(ctx); err != nil {
		return report.Sample{}, err
	}
	w, err := r.startProcess(ctx, s, peer.Worker, srv.URL(), fewCallers)
	if err != nil {
		return report.Sample{}, err
	}
	defer w.end()
	p, err := r.startProcess(ctx, s, peer.Producer, srv.URL(), cmd.Callers)
	if err != nil {
		return report.Sample{}, err
	}
	defer p.end()
	work := peer.Command{Op: peer.Work}
	if cmd.Op == peer.Pace {
		work.Messages = cmd.Messages
	}
	if err := w.tell(work); err != nil {
		return report.Sample{}, err
	}
	if _, err := w.await(ctx, peer.Ready); err != nil {
		return report.Sample{}, err
	}
	m, err := begin(ctx, srv, cmd.Messages)
	if err != nil {
		return report.Sample{}, err
	}
	published, err := p.publish(ctx, cmd)
	if err != nil {
		return report.Sample{}, err
	}
	if err := awaitHandled(ctx, []*process{w}, cmd.Messages); err != nil {
		return report.Sample{}, err
	}
	ended, err := srv.awaitEnded(ctx, s)
	if err != nil {
		return report.Sample{}, err
	}
	sample, err := m.end(ctx, 0, 0, p, w)
	if err != nil {
		return report.Sample{}, err
	}
	done, err := tellAll(ctx, []*process{w}, cmd.Messages)
	if err != nil {
		return report.Sample{}, err
	}
	sample.Rate = perSecond(cmd.Messages, published.First, ended)
	if cmd.Op == peer.Pace {
		latencies(&sample, done.Latencies)
		sample.NotSustained = behind(cmd, published, done)
	}
	return sample, nil
}

// latencies leaves out the first tenth, in which connections are made and code is loaded.
func latencies(s *report.Sample, micros []int32) {
	warm := slices.Sorted(slices.Values(micros[len(micros)/10:]))
	s.P50 = report.Percentile(warm, 0.50) / 1000
	s.P99 = report.Percentile(warm, 0.99) / 1000
	s.P999 = report.Percentile(warm, 0.999) / 1000
}

// behind says how a rate was missed, or nothing.
func behind(cmd peer.Command, published, done peer.Event) string {
	planned := time.Duration(float64(cmd.Messages) / cmd.Rate * float64(time.Second))
	if late := time.Duration(published.Last-published.First) - planned; late > mostBehind {
		return fmt.Sprintf("the last message was stored %s late", late.Round(time.Millisecond))
	}
	if late := time.Duration(done.Last - published.Last); late > mostBehind {
		return fmt.Sprintf("the last message was handled %s after it was stored", late.Round(time.Millisecond))
	}
	return ""
}

func perSecond(n int, first, last int64) float64 {
	return float64(n) / time.Duration(last-first).Seconds()
}
