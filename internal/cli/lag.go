package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const lagHelp = `Print how many messages of a queue a group has not been given yet.

Redis 7 and newer know it, as a rule; where they do not, or what they say cannot be, and on older
servers, the entries are counted in pages, which takes about a second per 500,000; after a million
it prints "unknown" (null with --json), never 0. A group that is registered and not on the queue
would be given all of the queue. Nothing is changed.

With --max it fails when there are more than that, or when the number is not known: exit code 1, and
the number is printed all the same.`

const lagExample = `  xstreamq lag orders shipping
  xstreamq lag orders shipping --max 1000 || echo "shipping is behind"
  xstreamq lag orders shipping --json`

func newLag(a *app) *cobra.Command {
	var most int64
	cmd := &cobra.Command{
		Use:               "lag QUEUE GROUP",
		Short:             "Count the messages that a group has not been given yet",
		Long:              lagHelp,
		Example:           lagExample,
		Args:              arguments(2, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			limited := cmd.Flags().Changed("max")
			if limited && most < 0 {
				return usageError{errors.New("--max is negative")}
			}
			return a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				lag, err := client.Lag(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				if err := a.printLag(args[0], args[1], lag); err != nil {
					return err
				}
				if limited && overMax(lag, most) {
					return errQuiet
				}
				return nil
			})
		},
	}
	cmd.Flags().Int64Var(&most, "max", 0, "exit with 1 when there are more, or when it is not known (default: no limit)")
	return cmd
}

// overMax reports a lag that --max does not allow. One that is not known may be any.
func overMax(lag, most int64) bool { return lag == xstreamq.UnknownLag || lag > most }

func (a *app) printLag(queue, group string, lag int64) error {
	if a.json {
		return a.print(struct {
			Queue string `json:"queue"`
			Group string `json:"group"`
			Lag   *int64 `json:"lag"`
		}{queue, group, known(lag)})
	}
	_, err := fmt.Fprintln(a.out, count(lag))
	return err
}
