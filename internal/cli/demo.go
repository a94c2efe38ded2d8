package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/internal/cli/demo"
)

const demoHelp = `Publish 329 real GitHub webhook payloads, handle them in two groups with several workers, and let go wrong what can go wrong:
handlers that fail twice and then succeed, handlers that always fail, an entry of another producer that cannot be decoded,
a worker that is killed in mid-handler, a worker that is stopped in mid-run; and one message is delayed.

At the end it reads Redis, without the library, and accounts for every message: handled, or a dead letter, and nothing left
over. It exits 0 only when all are accounted for.

Without --url it runs on a small server inside the process. With --url it works under a key prefix of its own, and removes
those keys at the end.`

// errUnaccounted stands for the problems that the report lists.
var errUnaccounted = errors.New("not every message is accounted for")

func newDemo() *cobra.Command {
	var (
		url     string
		asJSON  bool
		verbose bool
	)
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the queue at work on real payloads, and check that nothing is lost",
		Long:  demoHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("url") && url == "" {
				return usageError{errors.New("--url is empty; leave it out to use the embedded server")}
			}
			return runDemo(cmd, url, asJSON, verbose)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&url, "url", "", "Redis to run on, as redis://[user:password@]host:port[/db] (default: an embedded server)")
	flags.BoolVar(&asJSON, "json", false, "print the result as one JSON object")
	flags.BoolVarP(&verbose, "verbose", "v", false, "show what the library logs")
	return cmd
}

func runDemo(cmd *cobra.Command, url string, asJSON, verbose bool) error {
	progress := demo.NewProgress(cmd.ErrOrStderr())
	defer progress.Close()
	opts := demo.Options{URL: url, Progress: progress}
	if verbose {
		opts.Logger = slog.New(slog.NewTextHandler(progress, nil))
	}
	report, err := demo.Run(cmd.Context(), opts)
	progress.Close()
	if report != nil {
		write := report.WriteText
		if asJSON {
			write = report.WriteJSON
		}
		if writeErr := write(cmd.OutOrStdout()); writeErr != nil {
			return fmt.Errorf("print the result: %w", writeErr)
		}
	}
	if err == nil && !report.Accounted {
		return errUnaccounted
	}
	return err
}
