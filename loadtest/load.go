package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/loadtest/internal/load"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
	"github.com/xstreamq/xstreamq/loadtest/internal/sweep"
)

// loadFlags are those of the command load.
type loadFlags struct {
	url, aof string
	sweep    bool
	opts     load.Options
	output   report.Output
}

func newLoadCommand() *cobra.Command {
	f := &loadFlags{}
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Measure publish rate, drain rate and end-to-end latency",
		Long: "Measure how fast a plain producer publishes, how fast worker processes drain a full queue, and the latency from\n" +
			"send to the start of the handler at a rate. With --sweep: by the number of connections and of worker processes,\n" +
			"and at rising rates up to the first one that is not sustained.\n\n" +
			"A rate is sustained with " + strings.ReplaceAll(sweep.Definition, ", and a", ",\nand a") + ".",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "Redis server, redis://host:port (default: one of its own)")
	flags.StringVar(&f.aof, "aof", "everysec", "append-only file of the own server: off, everysec or always")
	flags.BoolVar(&f.sweep, "sweep", false, "go through connections, worker processes and rates")
	flags.Float64Var(&f.opts.Rate, "rate", 2000, "messages per second of the end-to-end phase; 0 is as fast as possible; a sweep tries its own")
	flags.DurationVar(&f.opts.Duration, "duration", 5*time.Second, "of each phase that publishes")
	flags.IntVar(&f.opts.Connections, "connections", 4, "connections that publish; a sweep tries its own, and uses these end to end")
	flags.IntVar(&f.opts.Workers, "workers", 1, "worker processes; a sweep tries its own, and uses these end to end")
	flags.IntVar(&f.opts.Worker.Concurrency, "concurrency", 64, "handlers at once in each worker process")
	flags.IntVar(&f.opts.Worker.Prefetch, "prefetch", 0, "messages read ahead in each (default: as many as handlers)")
	flags.IntVar(&f.opts.Messages, "messages", 200_000, "messages of a drain phase")
	flags.IntVar(&f.opts.Body, "body", 128, "bytes of a body")
	flags.BoolVar(&f.output.JSON, "json", false, "report as JSON")
	flags.StringVar(&f.output.Page, "html", "", "write the report as an HTML page to this `file`")
	return cmd
}

// check reports all mistakes at once.
func (f *loadFlags) check() error {
	var errs []error
	check := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	o := &f.opts
	check(f.aof != "off" && f.aof != "everysec" && f.aof != "always", "--aof %q: use off, everysec or always", f.aof)
	check(!(o.Rate >= 0 && o.Rate <= 1e7), "--rate %v: use 0 to 10000000", o.Rate)
	check(o.Duration < time.Second || o.Duration > time.Hour, "--duration %v: use 1s to 1h", o.Duration)
	check(o.Connections < 1 || o.Connections > 1000, "--connections %d: use 1 to 1000", o.Connections)
	check(o.Workers < 1 || o.Workers > 100, "--workers %d: use 1 to 100", o.Workers)
	check(o.Worker.Concurrency < 1 || o.Worker.Concurrency > 10_000, "--concurrency %d: use 1 to 10000", o.Worker.Concurrency)
	check(o.Worker.Prefetch < 0 || o.Worker.Prefetch > 100_000, "--prefetch %d: use 0 to 100000", o.Worker.Prefetch)
	check(o.Messages < 1 || o.Messages > 100_000_000, "--messages %d: use 1 to 100000000", o.Messages)
	check(o.Body < message.MinBody || o.Body > 1<<20, "--body %d: use %d to 1048576", o.Body, message.MinBody)
	return errors.Join(append(errs, f.output.Check())...)
}

func (f *loadFlags) run(cmd *cobra.Command) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if f.opts.Dir, err = os.MkdirTemp("", "xstreamq-load-*"); err != nil {
		return fmt.Errorf("make a folder for the journals: %w", err)
	}
	defer os.RemoveAll(f.opts.Dir)
	url := f.url
	if url == "" {
		server, startErr := supervisor.StartServer("", strings.TrimSuffix(f.aof, "off"))
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		url = server.URL()
	}
	if f.opts.Server, err = resp.ParseURL(url); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to run it as a worker: %w", err)
	}
	f.opts.Command = []string{self, workerCommand}
	f.opts.Worker.URL = url
	r, runErr := f.measure(cmd)
	if r == nil {
		return runErr
	}
	if err := f.output.Write(r, cmd.OutOrStdout()); err != nil {
		return errors.Join(runErr, err)
	}
	switch {
	case errors.Is(runErr, context.Canceled):
		return errors.New("interrupted: the report has the phases that were complete")
	case runErr == nil && !r.Held:
		return errVerdict
	}
	return runErr
}

// measure runs the phases. With an error the report has what was measured until then, and its verdict is broken.
func (f *loadFlags) measure(cmd *cobra.Command) (*report.Report, error) {
	ctx := cmd.Context()
	r := &report.Report{Command: "load", Started: time.Now(), Machine: report.ThisMachine(ctx), Settings: f.settings()}
	if err := r.Machine.AskServer(ctx, f.opts.Server); err != nil {
		return nil, err
	}
	rig := load.NewRig(f.opts)
	live := report.StartLive(cmd.ErrOrStderr(), rig.Progress)
	sampler := report.StartSampler(ctx, 0, report.MemoryProbe(rig.PIDs))
	phases := rig.Once
	if f.sweep {
		r.Command, phases = "load --sweep", rig.Sweep
	}
	results, err := phases(ctx)
	live.Stop()
	memory := sampler.Stop()
	results.Fill(r)
	r.Plots = append(r.Plots, memory...)
	r.Took = time.Since(r.Started)
	f.judge(r, results, rig.Tally(), err)
	return r, err
}

func (f *loadFlags) settings() []report.Setting {
	o := &f.opts
	prefetch := o.Worker.Prefetch
	if prefetch == 0 {
		prefetch = o.Worker.Concurrency
	}
	s := []report.Setting{
		{Name: "--duration", Value: o.Duration.String()},
		{Name: "--connections", Value: strconv.Itoa(o.Connections)},
		{Name: "--workers", Value: strconv.Itoa(o.Workers)},
		{Name: "--concurrency", Value: strconv.Itoa(o.Worker.Concurrency)},
		{Name: "--prefetch", Value: strconv.Itoa(prefetch)},
		{Name: "--messages", Value: strconv.Itoa(o.Messages)},
		{Name: "--body", Value: strconv.Itoa(o.Body)},
	}
	if !f.sweep {
		s = append(s, report.Setting{Name: "--rate", Value: strconv.FormatFloat(o.Rate, 'f', -1, 64)})
	}
	return append(s,
		report.Setting{Name: "producer", Value: "plain XADD, those that are due in one round trip, at most 100"},
		report.Setting{Name: "handler", Value: "writes two records to a journal, and nothing else"},
		report.Setting{Name: "sustained", Value: sweep.Definition},
	)
}

// judge adds the checks. A sweep ends at a rate that is not sustained, so only a single rate has to be.
func (f *loadFlags) judge(r *report.Report, results *load.Results, tally load.Tally, err error) {
	add := func(name string, held bool, want, got string) {
		r.Checks = append(r.Checks, report.Check{Name: name, Held: held, Want: want, Got: got})
	}
	add("every acknowledged message was handled", tally.Handled == tally.Acknowledged,
		report.FormatCount(tally.Acknowledged), report.FormatCount(tally.Handled))
	add("every publish was acknowledged", tally.Refused+tally.Unknown == 0, "0 refused, 0 unknown",
		fmt.Sprintf("%s refused, %s unknown", report.FormatCount(tally.Refused), report.FormatCount(tally.Unknown)))
	switch {
	case f.sweep:
		add("some rate is sustained", results.Sustained > 0, "> 0/s", report.FormatCount(int64(results.Sustained))+"/s")
	case f.opts.Rate > 0 && len(results.Carried) == 1:
		ok, why := results.Carried[0].Sustained()
		if ok {
			why = "sustained"
		}
		add("the rate is sustained", ok, report.FormatCount(int64(f.opts.Rate))+"/s", why)
	}
	ended := "to its end"
	if errors.Is(err, context.Canceled) {
		ended = "interrupted"
	} else if err != nil {
		ended = "failed"
	}
	add("the run went through all phases", err == nil, "to its end", ended)
	r.Counts = append(r.Counts,
		report.Count{Name: "messages published for workers", N: tally.Acknowledged},
		report.Count{Name: "handled a second time", N: tally.Repeated},
	)
	if results.Sustained > 0 {
		r.Counts = append(r.Counts, report.Count{Name: "highest sustained rate, messages/s", N: int64(results.Sustained)})
	}
	if results.Broken > 0 {
		r.Counts = append(r.Counts, report.Count{Name: "lowest rate that was not, messages/s", N: int64(results.Broken)})
	}
	r.Held = true
	for _, c := range r.Checks {
		r.Held = r.Held && c.Held
	}
}
