package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/internal/cli/demo"
)

const demoHelp = `Publish 329 real GitHub webhook payloads, handle them in two groups with several workers, and let go
wrong what can go wrong: handlers that fail twice and then succeed, handlers that always fail, an
entry of another producer that cannot be decoded, a worker that is killed in mid-handler, a worker
that is stopped in mid-run; and one message is delayed.

At the end it reads Redis, without the library, and accounts for every message: handled, or a dead
letter, and nothing left over. It exits 0 only when all are accounted for.

Without --url and --url-file it runs on a small server inside the process, also when XSTREAMQ_URL is
set. With them it works under a key prefix of its own, and removes those keys at the end.`

// errUnaccounted stands for the problems that the report lists.
var errUnaccounted = errors.New("not every message is accounted for")

func newDemo(a *app) *cobra.Command {
	var verbose bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the queue at work on real payloads, and check that nothing is lost",
		Long:  demoHelp,
		Example: `  xstreamq demo
  xstreamq demo --json
  xstreamq demo --url redis://localhost:6379`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range []string{"cacert", "cert", "key", "prefix"} {
				if cmd.Flags().Changed(name) {
					return usageError{fmt.Errorf("demo does not take --%s", name)}
				}
			}
			return a.bounded(cmd, 0, func(ctx context.Context) error {
				url := "" // the embedded server
				if a.conn.given() {
					var err error
					if url, _, err = a.conn.address(ctx); err != nil {
						return err
					}
				}
				return a.demo(ctx, url, verbose)
			})
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what the library logs")
	return cmd
}

func (a *app) demo(ctx context.Context, url string, verbose bool) error {
	progress := demo.NewProgress(a.err)
	defer progress.Close()
	opts := demo.Options{URL: url, Progress: progress}
	if verbose {
		opts.Logger = slog.New(slog.NewTextHandler(progress, nil))
	}
	report, err := demo.Run(ctx, opts)
	progress.Close()
	if report != nil {
		write := report.WriteText
		if a.json {
			write = report.WriteJSON
		}
		if writeErr := write(a.out); writeErr != nil {
			return fmt.Errorf("print the result: %w", writeErr)
		}
	}
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: %w", err, ctx.Err())
	case err == nil && !report.Accounted:
		return errUnaccounted
	}
	return err
}
