package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/bench/peer"
	"github.com/xstreamq/xstreamq/bench/report"
)

// phaseLimit is when a phase is given up: something was lost, or the machine is far too slow.
const phaseLimit = 2 * time.Minute

// Plan says how much is measured.
type Plan struct {
	Rounds  int
	Length  time.Duration // of a phase at full speed, about
	PaceFor time.Duration // of a phase at a fixed rate
	Systems []string      // by name; empty: all
	Phases  []string      // of phases; empty: all
}

var phases = []string{"raw", "publish", "drain", "e2e", "latency"}

// check names what the plan asks for and is not there.
func (p Plan) check() error {
	var known []string
	for _, s := range Systems() {
		known = append(known, s.Name)
	}
	for _, name := range p.Systems {
		if !slices.Contains(known, name) {
			return fmt.Errorf("there is no system %q; there are %s", name, strings.Join(known, ", "))
		}
	}
	for _, name := range p.Phases {
		if !slices.Contains(phases, name) {
			return fmt.Errorf("there is no phase %q; there are %s", name, strings.Join(phases, ", "))
		}
	}
	return nil
}

// Full takes under 25 minutes, Quick under 6.
var (
	Full  = Plan{Rounds: 3, Length: 1500 * time.Millisecond, PaceFor: 3 * time.Second}
	Quick = Plan{Rounds: 1, Length: 700 * time.Millisecond, PaceFor: 2 * time.Second}
)

// Rig runs the benchmark.
type Rig struct {
	Plan    Plan
	Child   []string  // the program and first arguments that run [peer.Main]
	NodeDir string    // whose node_modules hold the packages of node/package.json; empty: the systems of Node are left out
	Log     io.Writer // gets a line per phase

	nodeSource string
	systems    []System
	servers    []*server // without AOF, with
	result     report.Run
}

// Run measures everything in the plan. What it returns with an error is what was measured before.
func (r *Rig) Run(ctx context.Context) (*report.Run, error) {
	began := time.Now()
	r.result = report.Run{
		Date: began.UTC(), Rounds: r.Plan.Rounds, Length: r.Plan.Length.String(), PaceFor: r.Plan.PaceFor.String(),
	}
	if err := r.prepare(ctx); err != nil {
		return &r.result, err
	}
	defer r.close()
	for round := range r.Plan.Rounds {
		for _, srv := range r.servers {
			if err := r.round(ctx, srv, round); err != nil {
				return &r.result, fmt.Errorf("round %d: %w", round+1, err)
			}
		}
	}
	r.result.Took = time.Since(began).Round(time.Second).String()
	return &r.result, nil
}

func (r *Rig) prepare(ctx context.Context) error {
	if err := r.Plan.check(); err != nil {
		return err
	}
	r.nodeSource = "node"
	for _, s := range Systems() {
		switch {
		case len(r.Plan.Systems) > 0 && !slices.Contains(r.Plan.Systems, s.Name):
		case s.Node && r.NodeDir == "":
			r.result.Missing = append(r.result.Missing, s.Title+": needs Node 20 and npm")
		default:
			r.systems = append(r.systems, s)
		}
	}
	for _, aof := range []bool{false, true} {
		srv, err := startServer(aof)
		if err != nil {
			r.close()
			return err
		}
		r.servers = append(r.servers, srv)
	}
	facts, err := r.facts(ctx)
	if err != nil {
		r.close()
		return err
	}
	r.result.Machine = facts
	return nil
}

func (r *Rig) close() {
	for _, srv := range r.servers {
		srv.close()
	}
}

// round runs each phase once, every system in turn, in another order each time.
func (r *Rig) round(ctx context.Context, srv *server, round int) error {
	turn := round % max(1, len(r.systems))
	systems := slices.Concat(r.systems[turn:], r.systems[:turn])
	if r.wants("raw") {
		if err := r.raw(ctx, srv); err != nil {
			return err
		}
	}
	for _, m := range report.Throughputs {
		for _, s := range systems {
			if !r.wants(phaseOf(m)) || !s.has(m) {
				continue
			}
			if err := r.phase(ctx, srv, s, m, func(ctx context.Context) (report.Sample, error) { return r.fullSpeed(ctx, srv, s, m) }); err != nil {
				return err
			}
		}
	}
	for _, rate := range report.Rates {
		for _, s := range systems {
			if !r.wants("latency") || s.only != nil || s.Kind == report.Ceiling {
				continue
			}
			err := r.phase(ctx, srv, s, report.Latency(rate), func(ctx context.Context) (report.Sample, error) { return r.paced(ctx, srv, s, rate) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Rig) wants(phase string) bool {
	return len(r.Plan.Phases) == 0 || slices.Contains(r.Plan.Phases, phase)
}

func phaseOf(m report.Measure) string {
	switch m {
	case report.Publish64, report.Publish256:
		return "publish"
	case report.EndToEnd:
		return "e2e"
	default:
		return "drain"
	}
}

// phase runs one phase and keeps its sample.
func (r *Rig) phase(ctx context.Context, srv *server, s System, m report.Measure, run func(context.Context) (report.Sample, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, phaseLimit, errors.New("the phase took too long"))
	defer cancel()
	sample, err := run(ctx)
	if err != nil {
		return fmt.Errorf("%s, %s (AOF %t): %w", s.Name, m, srv.aof, err)
	}
	r.result.Add(s.Name, m, srv.aof, sample)
	fmt.Fprintln(r.Log, report.Line(s.Title, m, srv.aof, sample))
	return nil
}

func (r *Rig) fullSpeed(ctx context.Context, srv *server, s System, m report.Measure) (report.Sample, error) {
	n := s.messages(m, r.Plan.Length)
	switch m {
	case report.Publish64:
		return r.publish(ctx, srv, s, n, s.callers(fewCallers))
	case report.Publish256:
		return r.publish(ctx, srv, s, n, s.callers(manyCallers))
	case report.Drain1:
		return r.drain(ctx, srv, s, n, 1)
	case report.Drain2:
		return r.drain(ctx, srv, s, n, 2)
	default:
		return r.endToEnd(ctx, srv, s, peer.Command{Op: peer.Publish, Messages: n, Callers: s.callers(fewCallers)})
	}
}

// hopeless is the share of a rate that a system must reach at full speed to be tried at that rate.
const hopeless = 0.75

func (r *Rig) paced(ctx context.Context, srv *server, s System, rate int) (report.Sample, error) {
	if fastest := r.result.Find(s.Name, report.EndToEnd, srv.aof); fastest != nil {
		last := fastest.Samples[len(fastest.Samples)-1].Rate
		if last < hopeless*float64(rate) {
			return report.Sample{NotSustained: fmt.Sprintf("not tried: %.0f/s end to end at full speed", last)}, nil
		}
	}
	return r.endToEnd(ctx, srv, s, peer.Command{
		Op: peer.Pace, Messages: int(float64(rate) * r.Plan.PaceFor.Seconds()), Callers: fewCallers, Rate: float64(rate),
	})
}
