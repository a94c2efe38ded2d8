package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const dlqPurgeHelp = `Delete dead letters for good: those with the IDs given, or all that the filters choose, oldest
first. Nothing brings them back.

Without IDs it shows what it would delete and asks; --yes is the answer where nobody can be asked.
What dies after it was shown stays. An ID that is not there (any more) is a warning, not a failure.
With --json the outcome is one object.`

const dlqPurgeExample = `  xstreamq dlq purge orders shipping 1735689600000-0
  xstreamq dlq purge orders shipping --reason undecodable --older-than 30d
  xstreamq dlq purge orders shipping --older-than 90d --yes`

func newDLQPurge(a *app) *cobra.Command {
	o := choice{verb: "purge"}
	cmd := &cobra.Command{
		Use:               "purge QUEUE GROUP [ID...]",
		Short:             "Delete dead letters for good",
		Long:              dlqPurgeHelp,
		Example:           dlqPurgeExample,
		Args:              choiceArguments,
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(cmd, args); err != nil {
				return err
			}
			return a.work(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return o.purge(ctx, a, client)
			})
		},
	}
	o.addFlags(cmd)
	return cmd
}

// purgeRow is the outcome, for --json.
type purgeRow struct {
	Queue      string `json:"queue"`
	Group      string `json:"group"`
	Purged     int    `json:"purged"`
	WouldPurge *int   `json:"would_purge,omitempty"` // with --dry-run
	Gone       int    `json:"gone"`                  // of the IDs given
}

func (c *choice) purge(ctx context.Context, a *app, client *xstreamq.Client) error {
	if len(c.ids) > 0 && !c.dryRun {
		n, err := client.Purge(ctx, c.queue, c.group, c.ids...)
		return c.reportPurged(a, n, err)
	}
	filter := c.filter
	if c.dryRun || !c.yes {
		seen, err := c.look(ctx, a, client, func(*xstreamq.DeadMessage) string { return "" })
		if err != nil {
			return err
		}
		n, which := len(seen.Redriven), byReason(seen.reasons)
		switch {
		case c.dryRun:
			return c.reportPurgeable(a, n, which)
		case n == 0:
			return c.reportPurged(a, 0, nil)
		}
		if err := a.confirm(fmt.Sprintf("delete for good %s of %s (%s)", deadLetters(n), c, which), false); err != nil {
			return err
		}
		filter = seen.upTo(filter)
	}
	bar := a.newProgress("dead letters", c.total(ctx, a, client))
	defer bar.close()
	n, err := client.PurgeAll(ctx, c.queue, c.group, xstreamq.PurgeAllOptions{
		Filter: filter, Limit: c.limit, Progress: func(looked, _ int) { bar.set(looked) },
	})
	bar.close()
	return c.reportPurged(a, n, err)
}

// reportPurged says what was done, also when it ended in an error.
func (c *choice) reportPurged(a *app, n int, err error) error {
	row := purgeRow{Queue: c.queue, Group: c.group, Purged: n, Gone: max(0, len(c.ids)-n)}
	if err != nil {
		row.Gone = 0 // not known
	}
	if err == nil || n > 0 {
		if printErr := c.printPurged(a, row, fmt.Sprintf("purged %s of %s", deadLetters(n), c)); printErr != nil {
			return printErr
		}
	}
	switch {
	case err != nil:
		return a.stopped("purged", n, err)
	case n == 0 && c.empty.exit:
		return errEmpty
	}
	return nil
}

// reportPurgeable says what would be done.
func (c *choice) reportPurgeable(a *app, n int, reasons string) error {
	row := purgeRow{Queue: c.queue, Group: c.group, WouldPurge: &n, Gone: max(0, len(c.ids)-n)}
	text := fmt.Sprintf("would purge %s of %s", deadLetters(n), c)
	if reasons != "" {
		text += " (" + reasons + ")"
	}
	if err := c.printPurged(a, row, text); err != nil {
		return err
	}
	if n == 0 && c.empty.exit {
		return errEmpty
	}
	return nil
}

func (c *choice) printPurged(a *app, row purgeRow, text string) error {
	if row.Gone > 0 {
		fmt.Fprintf(a.err, "warning: gone, redriven or purged already: %s\n", plural(row.Gone, "of these IDs", "of these IDs"))
	}
	if a.json {
		return a.print(row)
	}
	_, err := fmt.Fprintln(a.out, text)
	return err
}
