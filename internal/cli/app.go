package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/xstreamq/xstreamq"
)

// app is what all commands share: the streams, and the flags that each of them has.
type app struct {
	in       io.Reader
	out, err io.Writer
	conn     connection
	json     bool
	noColor  bool
	// config is that of the queues' client, for commands that need more than the key prefix, which is set by open.
	config xstreamq.Config
	// ctx is that of the command that runs: it ends by a signal, and by --timeout.
	ctx context.Context
	bar bar
	// reached is set once Redis was connected to.
	reached bool
}

// addFlags puts the flags of every command on the root.
func (a *app) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	a.conn.addFlags(flags)
	flags.BoolVar(&a.json, "json", false, "print JSON only, one object per line")
	flags.BoolVar(&a.noColor, "no-color", false, "use no colors (also: NO_COLOR)")
}

// open connects to the queues. It ends with the command.
func (a *app) open() (*xstreamq.Client, error) { return a.openWith(a.config) }

// openWith is open with a configuration of one's own, whose key prefix is set here.
func (a *app) openWith(config xstreamq.Config) (*xstreamq.Client, error) {
	opts, err := a.conn.options(a.ctx)
	if err != nil {
		return nil, err
	}
	config.KeyPrefix = a.conn.prefix
	client, err := opening(a.ctx, opts.InitAddress, func() (*xstreamq.Client, error) {
		return xstreamq.OpenWith(opts, config)
	}, func(c *xstreamq.Client) { _ = c.Close() })
	return client, a.contact(opts, err)
}

// contact takes note of how connecting ended: what is wrong with TLS shows at the first attempt.
func (a *app) contact(opts rueidis.ClientOption, err error) error {
	if err == nil {
		a.reached = true
	}
	if a.reached {
		return err
	}
	return tlsMismatch(opts, err)
}

// opening connects, and does not wait for it beyond the end of ctx: a server that takes connections and then is silent holds
// those who connect. What comes too late is closed.
func opening[T any](ctx context.Context, where []string, open func() (T, error), closeLate func(T)) (T, error) {
	type answer struct {
		client T
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		client, err := open()
		answered <- answer{client, err}
	}()
	select {
	case a := <-answered:
		return a.client, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answered; a.err == nil {
				closeLate(a.client)
			}
		}()
		var none T
		return none, fmt.Errorf("cannot connect to %v: %w", where, ctx.Err())
	}
}

// lookTimeout bounds a whole command that only looks.
const lookTimeout = 30 * time.Second

// look runs a command that only looks: it ends by --timeout, or after lookTimeout.
func (a *app) look(cmd *cobra.Command, run func(ctx context.Context, client *xstreamq.Client) error) error {
	return a.with(cmd, lookTimeout, run)
}

// work runs a command that goes on for as long as there is something to do and Redis answers, unless --timeout ends it.
func (a *app) work(cmd *cobra.Command, run func(ctx context.Context, client *xstreamq.Client) error) error {
	return a.with(cmd, 0, run)
}

// with runs a command with a client, which it closes: within a second also when Redis is silent.
func (a *app) with(cmd *cobra.Command, limit time.Duration, run func(context.Context, *xstreamq.Client) error) error {
	return a.bounded(cmd, limit, func(ctx context.Context) error {
		client, err := a.open()
		if err != nil {
			return err
		}
		// What a drain left behind is told to those who began it.
		defer func() { _ = client.Close() }()
		return run(ctx, client)
	})
}

// bounded runs a command that opens no client, or more than one: limit is its time when --timeout says nothing, 0 = no end.
func (a *app) bounded(cmd *cobra.Command, limit time.Duration, run func(context.Context) error) error {
	if a.conn.timeout < 0 {
		return usageError{errors.New("--timeout must not be negative")}
	}
	if a.conn.timeout > 0 {
		limit = a.conn.timeout
	}
	ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	a.ctx = ctx
	err := run(ctx)
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &timeoutError{limit, err}
	}
	return err
}

// server connects for what the queues' client does not ask: about Redis itself. Close it: that takes a second at most. Connecting ends
// with the command.
func (a *app) server() (rueidis.Client, error) {
	opts, err := a.conn.options(a.ctx)
	if err != nil {
		return nil, err
	}
	opts.DisableCache = true
	opts.AlwaysPipelining = true // so that deadlines end commands, not connections
	opts.PipelineMultiplex = -1  // one connection, since each takes a second to close while Redis is silent
	client, err := opening(a.ctx, opts.InitAddress, func() (rueidis.Client, error) {
		client, err := rueidis.NewClient(opts)
		if err == nil {
			return client, nil
		}
		if client != nil {
			client.Close()
		}
		return nil, fmt.Errorf("cannot connect to %v: %w", opts.InitAddress, err)
	}, rueidis.Client.Close)
	return client, a.contact(opts, err)
}

// colors reports whether the output may have some.
func (a *app) colors() bool {
	return !a.noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(a.out)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := fileOf(stream)
	return ok && term.IsTerminal(int(file.Fd()))
}

// fileOf returns the file that a stream is, for what must go to it directly, such as the output of a child process.
func fileOf(stream any) (*os.File, bool) {
	if s, ok := stream.(*stdout); ok {
		stream = s.w
	}
	file, ok := stream.(*os.File)
	return file, ok
}

// errEmpty ends a command that found nothing, where --exit-empty asks for that: exit code 4, without a word.
var errEmpty = errors.New("nothing matched")

// errQuiet ends a command whose output says already what is wrong: exit code 1, without another word.
var errQuiet = errors.New("said already")
