package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const compactHelp = `Trim from a queue what every group has finished with, as its workers do by themselves every few
seconds, and never more. It is for queues that nobody works on now, such as those whose groups were
just forgotten.

It keeps finished entries for --retain, by default not at all: workers with a Config.Retain keep
them longer, and their setting is not known here. Redis trims whole nodes of a stream, so some
hundred finished entries stay.

Nothing is trimmed while a registered group is missing from the queue, because nobody knows what it
has not seen. The command then names the group: start a worker of it, or forget it.`

const compactExample = `  xstreamq compact orders
  xstreamq compact orders --retain 24h --json`

func newCompact(a *app) *cobra.Command {
	var retain span
	cmd := &cobra.Command{
		Use:               "compact QUEUE",
		Short:             "Trim what every group has finished with",
		Long:              compactHelp,
		Example:           compactExample,
		Args:              arguments(1, "QUEUE"),
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			a.config.Retain = time.Duration(retain)
			return a.work(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return a.compact(ctx, client, args[0])
			})
		},
	}
	cmd.Flags().Var(&retain, "retain", "keep finished entries this long, such as 12h or 7d (default: not at all)")
	return cmd
}

// compactRow is the outcome, for --json.
type compactRow struct {
	Queue   string `json:"queue"`
	Trimmed int64  `json:"trimmed"`
	// Blocker is missing_group, no_group, or null when nothing is in the way.
	Blocker *string `json:"blocker"`
	Missing *string `json:"missing_group"`
}

func (a *app) compact(ctx context.Context, client *xstreamq.Client, queue string) error {
	result, err := client.Compact(ctx, queue)
	if err != nil {
		if result.Trimmed > 0 {
			fmt.Fprintf(a.err, "stopped: %d entries trimmed so far\n", result.Trimmed)
		}
		return err
	}
	row := compactRow{Queue: queue, Trimmed: result.Trimmed}
	blocker := ""
	switch {
	case result.NoGroup:
		blocker = "no_group"
		fmt.Fprintf(a.err, "warning: queue %s has no group, so nothing is finished: start a worker of one\n", queue)
	case result.Missing != "":
		blocker = "missing_group"
		row.Missing = &result.Missing
		fmt.Fprintf(a.err, "warning: group %s is registered and not on the queue, so nothing is trimmed: "+
			"start a worker of it, or run: xstreamq forget %s %s\n", printable(result.Missing), queue, printable(result.Missing))
	}
	if blocker != "" {
		row.Blocker = &blocker
	}
	if a.json {
		return a.print(row)
	}
	_, err = fmt.Fprintf(a.out, "trimmed %d entries of queue %s\n", result.Trimmed, queue)
	return err
}
