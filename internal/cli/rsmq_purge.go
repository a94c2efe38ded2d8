package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqPurgeHelp = `Delete all messages of a queue: visible, hidden and delayed ones, and those that are sent meanwhile.
The queue stays, with its attributes and counters. Nothing brings the messages back, and whoever
holds one cannot extend it any more.

It shows how many there are and asks; --yes is the answer where nobody can be asked. They are
deleted in pages of 500, without being received. Where it is stopped, it can be run again.`

const rsmqPurgeExample = `  xstreamq rsmq purge -q orders
  xstreamq rsmq purge -q orders --yes --json`

func newRSMQPurge(o *rsmqOptions) *cobra.Command {
	var sure bool
	cmd := &cobra.Command{
		Use:     "purge",
		Short:   "Delete all messages of a queue",
		Long:    rsmqPurgeHelp,
		Example: rsmqPurgeExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				found, err := s.GetQueueAttributes(ctx, o.queue)
				if err != nil {
					return err
				}
				if found.Messages > 0 {
					if err := o.app.confirm("delete for good "+o.messages(found), sure); err != nil {
						return err
					}
				}
				return o.purge(ctx, s, int(found.Messages))
			})
		},
	}
	cmd.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask")
	return cmd
}

// messages says how many a queue has.
func (o *rsmqOptions) messages(found rsmq.Attributes) string {
	n := int(found.Messages)
	text := fmt.Sprintf("%s of RSMQ queue %s", plural(n, "message", "messages"), o.queue)
	if hidden := found.Messages - found.Visible; hidden > 0 {
		text += fmt.Sprintf(" (%d hidden or delayed)", hidden)
	}
	return text
}

// rsmqPurgeRow is the outcome, for --json.
type rsmqPurgeRow struct {
	Queue  string `json:"queue"`
	Purged int    `json:"purged"`
}

func (o *rsmqOptions) purge(ctx context.Context, s rsmqSession, total int) error {
	bar := o.app.newProgress("messages", total)
	defer bar.close()
	n, err := o.deleteAll(ctx, s, bar.set)
	bar.close()
	if err != nil && n == 0 {
		return err
	}
	var printErr error
	if o.app.json {
		printErr = o.app.print(rsmqPurgeRow{o.queue, n})
	} else {
		_, printErr = fmt.Fprintf(o.app.out, "purged %s of RSMQ queue %s\n", plural(n, "message", "messages"), o.queue)
	}
	if err != nil {
		fmt.Fprintln(o.app.err, "stopped before the end; run it again to go on")
	}
	return errors.Join(err, printErr)
}

// rsmqPurgePage is how many messages are deleted in one call.
const rsmqPurgePage = 500

// deleteAll deletes messages until there is none.
func (o *rsmqOptions) deleteAll(ctx context.Context, s rsmqSession, progress func(int)) (int, error) {
	for done := 0; ; {
		n, err := s.PurgeMessages(ctx, o.queue, rsmqPurgePage)
		done += n
		if err != nil || n < rsmqPurgePage {
			return done, err
		}
		progress(done)
	}
}

const rsmqDeleteQueueHelp = `Delete a queue with all its messages, and print 1. Nothing brings it back. It shows how many
messages there are and asks; --yes is the answer where nobody can be asked.`

const rsmqDeleteQueueExample = `  xstreamq rsmq delete-queue -q orders
  xstreamq rsmq delete-queue -q orders --yes`

func newRSMQDeleteQueue(o *rsmqOptions) *cobra.Command {
	var sure bool
	cmd := &cobra.Command{
		Use:     "delete-queue",
		Short:   "Delete a queue with all its messages",
		Long:    rsmqDeleteQueueHelp,
		Example: rsmqDeleteQueueExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				if !sure {
					found, err := s.GetQueueAttributes(ctx, o.queue)
					if err != nil {
						return err
					}
					if err := o.app.confirm(fmt.Sprintf("delete RSMQ queue %s with %s", o.queue, plural(int(found.Messages), "message", "messages")), false); err != nil {
						return err
					}
				}
				if err := s.DeleteQueue(ctx, o.queue); err != nil {
					return err
				}
				return o.printQueueDone()
			})
		},
	}
	cmd.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask")
	return cmd
}
