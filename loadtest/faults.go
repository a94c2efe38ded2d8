package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xstreamq/xstreamq/loadtest/internal/chaos"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/oracle"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
)

// maxWindow is how lenient a run may be asked to be.
const maxWindow = time.Second

// maxMessages is how many the oracle follows: it needs some 60 bytes of memory for each, and group.
const maxMessages = 20_000_000

// faultFlags are those that chaos and soak have in common.
type faultFlags struct {
	name     string
	url, aof string
	keep     string
	opts     chaos.Options
	output   report.Output
}

func (f *faultFlags) register(flags *pflag.FlagSet) {
	o := &f.opts
	flags.StringVar(&f.url, "url", "", "Redis server, redis://host:port (default: one of its own)")
	flags.StringVar(&f.aof, "aof", "", "append-only file of the own server: off, everysec or always (default everysec; always with --redis-faults)")
	flags.IntVar(&o.Body, "body", 128, "bytes of a body")
	flags.IntVar(&o.Connections, "connections", 4, "connections of the producer")
	flags.IntVar(&o.Workers, "workers", 4, "worker processes")
	flags.IntVar(&o.Groups, "groups", 1, "groups, each of which gets every message")
	flags.IntVar(&o.Concurrency, "concurrency", 0, "handlers at once in each worker (default: half as many more as the rate needs)")
	flags.IntVar(&o.Prefetch, "prefetch", 0, "messages read ahead in each worker (default: as many as handlers)")
	flags.DurationVar(&o.Handler, "handler", 50*time.Millisecond, "how long a handler takes")
	flags.Float64Var(&o.Plan.Rate, "failure-rate", 0.05, "share of handlers that fail")
	flags.IntVar(&o.Plan.MaxRetries, "max-retries", 3, "failures that are retried; one more makes a dead letter")
	flags.IntVar(&o.MaxLostLeases, "max-lost-leases", 5, "lost leases that are survived; one more makes a dead letter, which breaks the verdict")
	flags.DurationVar(&o.Visibility, "visibility", 2*time.Second, "length of a lease")
	flags.DurationVar(&o.Backoff, "backoff", 200*time.Millisecond, "first wait before a retry; doubles, up to ten times this")
	flags.DurationVar(&o.Dedupe, "dedupe", 0, "remember for so long what was handled; --dedupe alone is 10m (default off)")
	flags.Lookup("dedupe").NoOptDefVal = "10m"
	flags.DurationVar(&o.StopEvery, "stop-interval", 0, "between two stops (SIGSTOP) of a worker, for 1.5 leases; 0 is never")
	flags.DurationVar(&o.CrashEvery, "redis-faults", 0, "between two kills of Redis (SIGKILL); 0 is never")
	flags.DurationVar(&o.Drain, "drain", 2*time.Minute, "how long after the last publish everything must be done")
	flags.Float64Var(&o.MaxRepeats, "max-repeats", 0, "check that at most so many handlers per kill ran again after their end (default: a coarse bound, from rate and handlers)")
	flags.DurationVar(&o.Window, "window", 20*time.Millisecond, "how long after its end a handler may run again when its worker is killed: a loaded machine needs more")
	flags.Uint64Var(&o.Plan.Seed, "seed", 0, "repeats the choice of failures and of victims (default: random)")
	flags.StringVar(&f.keep, "journal", "", "an empty `folder` for journals and logs, which stay (default: a temporary one)")
	flags.BoolVar(&f.output.JSON, "json", false, "report as JSON")
	flags.StringVar(&f.output.Page, "html", "", "write the report as an HTML page to this `file`")
}

// check reports all mistakes at once.
func (f *faultFlags) check() error {
	var errs []error
	check := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	o := &f.opts
	check(f.aof != "" && f.aof != "off" && f.aof != "everysec" && f.aof != "always", "--aof %q: use off, everysec or always", f.aof)
	check(f.url != "" && f.aof != "", "--aof is for a server of its own, not for --url")
	check(f.url != "" && o.CrashEvery > 0, "--redis-faults is for a server of its own, not for --url")
	check(o.CrashEvery > 0 && f.aof == "off", "--redis-faults without an append-only file would lose everything")
	check(o.Messages < 1 || o.Messages > maxMessages, "--messages %d: use 1 to %d", o.Messages, maxMessages)
	check(!(o.Rate >= 0 && o.Rate <= 1e7), "--rate %v: use 0 to 10000000", o.Rate)
	check(o.Body < message.MinBody || o.Body > 1<<20, "--body %d: use %d to 1048576", o.Body, message.MinBody)
	check(o.Connections < 1 || o.Connections > 1000, "--connections %d: use 1 to 1000", o.Connections)
	check(o.Workers < 1+o.Spared || o.Workers > 100, "--workers %d: use %d to 100", o.Workers, 1+o.Spared)
	check(o.Groups < 1 || o.Groups > 8, "--groups %d: use 1 to 8", o.Groups)
	check(o.Messages > 0 && o.Groups > 0 && o.Messages > maxMessages/o.Groups, "--messages %d for %d groups: use %d messages at most for all groups",
		o.Messages, o.Groups, maxMessages)
	check(o.Concurrency < 0 || o.Concurrency > 10_000, "--concurrency %d: use 1 to 10000", o.Concurrency)
	check(!(o.Plan.Rate >= 0 && o.Plan.Rate <= 1), "--failure-rate %v: use 0 to 1", o.Plan.Rate)
	check(o.Plan.MaxRetries < 0 || o.Plan.MaxRetries > oracle.MaxRetries, "--max-retries %d: use 0 to %d", o.Plan.MaxRetries, oracle.MaxRetries)
	check(o.MaxLostLeases < 1 || o.MaxLostLeases > 200, "--max-lost-leases %d: use 1 to 200", o.MaxLostLeases)
	check(o.Visibility < 100*time.Millisecond, "--visibility %v: use 100ms or more", o.Visibility)
	check(o.Window <= 0 || o.Window > maxWindow, "--window %v: use more than 0, at most %v", o.Window, maxWindow)
	check(!(o.MaxRepeats >= 0), "--max-repeats %v: use 0 or more", o.MaxRepeats)
	check(o.Prefetch < -1 || o.Prefetch > 100_000, "--prefetch %d: use 0 to 100000, or -1 for none", o.Prefetch)
	check(o.Visibility > time.Hour, "--visibility %v: use 1h or less", o.Visibility)
	check(o.Backoff <= 0, "--backoff %v: use more than 0", o.Backoff)
	check(o.Handler < 0 || o.Dedupe < 0 || o.Drain <= 0, "--handler, --dedupe and --drain cannot be negative, and --drain not zero")
	check(o.KillEvery < 0 || o.StopEvery < 0 || o.CrashEvery < 0, "an interval cannot be negative; 0 is never")
	return errors.Join(append(errs, f.output.Check())...)
}

func (f *faultFlags) run(cmd *cobra.Command) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	if err := f.prepare(cmd); err != nil {
		return err
	}
	if f.keep == "" {
		defer os.RemoveAll(f.opts.Dir)
	}
	if f.url == "" {
		server, startErr := supervisor.StartServer("", map[bool]string{false: f.aof}[f.aof == "off"])
		if startErr != nil {
			return startErr
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		f.opts.Own, f.opts.URL = server, server.URL()
	} else {
		if err := f.reach(cmd.Context()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.clean()) }()
	}
	r, err := chaos.Run(cmd.Context(), f.opts)
	if err != nil {
		return err
	}
	if err := f.output.Write(r, cmd.OutOrStdout()); err != nil {
		return err
	}
	if !r.Held {
		return errVerdict
	}
	return nil
}

// prepare fills in what the flags leave open.
func (f *faultFlags) prepare(cmd *cobra.Command) error {
	o := &f.opts
	o.Name, o.URL, o.Progress = f.name, f.url, cmd.ErrOrStderr()
	if o.Plan.Seed == 0 {
		o.Plan.Seed = rand.Uint64()
	}
	if o.Concurrency == 0 {
		o.Concurrency = chaos.DefaultConcurrency(o.Rate, o.Handler, o.Workers)
	}
	if f.aof == "" {
		// With everysec Redis may acknowledge what it has not written, for up to two seconds of a slow disk.
		f.aof = map[bool]string{false: "everysec", true: "always"}[o.CrashEvery > 0]
	}
	o.Keys = oracle.Keys{Prefix: fmt.Sprintf("loadtest-%d-%08x:", os.Getpid(), rand.Uint32()), Queue: f.name}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to run it as a worker: %w", err)
	}
	o.Command = []string{self, workerCommand}
	o.Dir = f.keep
	if f.keep == "" {
		o.Dir, err = os.MkdirTemp("", "xstreamq-chaos-*")
	} else {
		err = emptyFolder(f.keep)
	}
	if err != nil {
		return fmt.Errorf("make a folder for the journals: %w", err)
	}
	o.Settings = f.settings()
	return nil
}

// reach says whether the server of --url answers, before anything is made that would have to be removed there.
func (f *faultFlags) reach(ctx context.Context) error {
	server, err := resp.ParseURL(f.url)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	conn, err := resp.Dial(ctx, server)
	if err != nil {
		return fmt.Errorf("--url: the server does not answer: %w", err)
	}
	return conn.Close()
}

// emptyFolder makes a folder, which must not hold anything yet: the oracle would take it for this run's.
func emptyFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	found, err := os.ReadDir(path)
	if err == nil && len(found) > 0 {
		err = fmt.Errorf("%s is not empty: it holds %s; name another for --journal", path, found[0].Name())
	}
	return err
}

// clean removes the run's keys from a server that is not its own.
func (f *faultFlags) clean() error {
	server, err := resp.ParseURL(f.url)
	if err != nil {
		return err
	}
	conn, err := resp.Dial(context.Background(), server)
	if err != nil {
		return fmt.Errorf("remove the keys under %s: %w", f.opts.Keys.Prefix, err)
	}
	defer conn.Close()
	for _, key := range f.opts.Keys.All(f.opts.Groups) {
		if _, err := conn.Do("UNLINK", key); err != nil {
			return fmt.Errorf("remove the key %s: %w", key, err)
		}
	}
	return nil
}

func (f *faultFlags) settings() []report.Setting {
	o := &f.opts
	prefetch := o.Prefetch
	if prefetch == 0 {
		prefetch = o.Concurrency
	}
	off := func(d time.Duration) string {
		if d == 0 {
			return "off"
		}
		return d.String()
	}
	rate := "as fast as possible"
	if o.Rate > 0 {
		rate = strconv.FormatFloat(o.Rate, 'f', -1, 64) + "/s"
	}
	return []report.Setting{
		{Name: "messages", Value: report.FormatCount(int64(o.Messages))}, {Name: "rate", Value: rate},
		{Name: "body", Value: strconv.Itoa(o.Body) + " bytes"}, {Name: "producer connections", Value: strconv.Itoa(o.Connections)},
		{Name: "workers", Value: strconv.Itoa(o.Workers)}, {Name: "left alone", Value: strconv.Itoa(o.Spared)},
		{Name: "groups", Value: strconv.Itoa(o.Groups)},
		{Name: "Concurrency of each worker", Value: strconv.Itoa(o.Concurrency)}, {Name: "Prefetch of each worker", Value: strconv.Itoa(prefetch)},
		{Name: "handler takes", Value: o.Handler.String()}, {Name: "failing handlers", Value: strconv.FormatFloat(100*o.Plan.Rate, 'f', -1, 64) + " %"},
		{Name: "MaxRetries", Value: strconv.Itoa(o.Plan.MaxRetries)}, {Name: "MaxLostLeases", Value: strconv.Itoa(o.MaxLostLeases)},
		{Name: "VisibilityTimeout", Value: o.Visibility.String()}, {Name: "Backoff.Initial", Value: o.Backoff.String()},
		{Name: "Dedupe", Value: off(o.Dedupe)}, {Name: "a kill every", Value: off(o.KillEvery)}, {Name: "a stop every", Value: off(o.StopEvery)},
		{Name: "Redis killed every", Value: off(o.CrashEvery)},
	}
}
