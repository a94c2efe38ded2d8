package xstreamq_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/xstreamq/xstreamq"
)

// faultRun is what happened to one message, by body.
type faultRun struct {
	begun, succeeded, active int
	most                     int // handlers at the same time
	retries, lost            int // the highest that a delivery said
	cause                    error
}

// faultRuns records what handlers did.
type faultRuns struct {
	mu   sync.Mutex
	of   map[string]*faultRun
	done int // messages that succeeded at least once
}

func newFaultRuns() *faultRuns { return &faultRuns{of: map[string]*faultRun{}} }

func (r *faultRuns) record(handle xstreamq.Handler[string]) xstreamq.Handler[string] {
	return func(ctx context.Context, m *xstreamq.Message[string]) error {
		r.mu.Lock()
		run := r.of[m.Body]
		if run == nil {
			run = &faultRun{}
			r.of[m.Body] = run
		}
		run.begun++
		run.active++
		run.most = max(run.most, run.active)
		run.retries, run.lost = max(run.retries, m.Retries), max(run.lost, m.LostLeases)
		r.mu.Unlock()
		err := handle(ctx, m)
		r.mu.Lock()
		defer r.mu.Unlock()
		run.active--
		if ctx.Err() != nil {
			run.cause = context.Cause(ctx)
		}
		if err == nil {
			run.succeeded++
			if run.succeeded == 1 {
				r.done++
			}
		}
		return err
	}
}

func (r *faultRuns) succeeded() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

func (r *faultRuns) get(body string) faultRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	if run := r.of[body]; run != nil {
		return *run
	}
	return faultRun{}
}

// all returns a copy of every run.
func (r *faultRuns) all() map[string]faultRun {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]faultRun, len(r.of))
	for body, run := range r.of {
		out[body] = *run
	}
	return out
}

// faultLog counts what is logged.
type faultLog struct {
	mu    sync.Mutex
	lines []string
}

func newFaultLog() *faultLog { return &faultLog{} }

func (l *faultLog) Enabled(context.Context, slog.Level) bool { return true }
func (l *faultLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *faultLog) WithGroup(string) slog.Handler            { return l }

func (l *faultLog) Handle(_ context.Context, rec slog.Record) error {
	line := rec.Message
	rec.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *faultLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.lines)
}

// has reports whether one line holds all the parts.
func (l *faultLog) has(parts ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(line string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
	})
}

func (l *faultLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}
