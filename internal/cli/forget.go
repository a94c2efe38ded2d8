package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const forgetHelp = `Remove a group that is gone for good, so that what it has not read no longer keeps the queue from
being trimmed: its row in the registry, its consumer group and its keys. It shows what the group has
and asks; --yes is the answer where nobody can be asked.

It refuses while the group has live workers or messages that are pending, to be retried or in
backoff: with --force these are lost to this group. A group with dead letters is never forgotten:
redrive or purge them first. What the group has not been given yet is not counted. A worker that
still runs makes the group anew, from the beginning of the queue.`

const forgetExample = `  xstreamq forget orders old-reports
  xstreamq forget orders old-reports --force --yes`

func newForget(a *app) *cobra.Command {
	var force, sure bool
	cmd := &cobra.Command{
		Use:               "forget QUEUE GROUP",
		Short:             "Remove a group that is gone for good",
		Long:              forgetHelp,
		Example:           forgetExample,
		Args:              arguments(2, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.work(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return a.forget(ctx, client, args[0], args[1], force, sure)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "also with live workers, or messages that are pending, to be retried or in backoff: these are lost")
	cmd.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask")
	return cmd
}

// forgetRow is the outcome, for --json.
type forgetRow struct {
	Queue     string `json:"queue"`
	Group     string `json:"group"`
	Forgotten bool   `json:"forgotten"`
}

func (a *app) forget(ctx context.Context, client *xstreamq.Client, queue, group string, force, sure bool) error {
	if !sure {
		question, err := whatIsForgotten(ctx, client, queue, group, force)
		if err != nil {
			return err
		}
		if err := a.confirm(question, false); err != nil {
			return err
		}
	}
	if err := client.Forget(ctx, queue, group, xstreamq.ForgetOptions{Force: force}); err != nil {
		return err
	}
	if a.json {
		return a.print(forgetRow{Queue: queue, Group: group, Forgotten: true})
	}
	_, err := fmt.Fprintf(a.out, "forgot group %s of queue %s\n", group, queue)
	return err
}

// whatIsForgotten is a sentence with what a group has.
func whatIsForgotten(ctx context.Context, client *xstreamq.Client, queue, group string, force bool) (string, error) {
	v := groupView{registration: xstreamq.Registration{Queue: queue, Group: group}}
	v.lookAt(ctx, client, true)
	if v.err != nil {
		return "", v.err
	}
	depth := v.depth
	sentence := fmt.Sprintf("forget group %s of queue %s: live workers %d, backlog %s, pending %d, retry %d, backoff %d, dead %d",
		group, queue, v.live, count(depth.Backlog), depth.Pending, depth.Retry, depth.Backoff, depth.Dead)
	if force && depth.Pending+depth.Retry+depth.Backoff > 0 {
		sentence += "; what is pending, to be retried or in backoff is lost"
	}
	return sentence, nil
}
