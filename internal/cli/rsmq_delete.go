package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqDeleteHelp = `Delete messages, whoever holds them, and print 1 or 0 for each: 0 says that it was not there, and
makes the exit code 1.

All ids are checked first: with a malformed one nothing is deleted. (delete-queue deletes a queue,
and purge all messages of one.)`

const rsmqDeleteExample = `  xstreamq rsmq delete -q orders fzr4l5uu8rA8cYOoLq9vC5kDH1xiUvOj
  xstreamq rsmq rm -q orders fzr4l5uu8rA8cYOoLq9vC5kDH1xiUvOj fzr4l5uu9wVbZJ1yXk0TnQeR3sLmD2Fg`

func newRSMQDelete(o *rsmqOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "delete ID...",
		Aliases: []string{"rm"},
		Short:   "Delete messages",
		Long:    rsmqDeleteHelp,
		Example: rsmqDeleteExample,
		Args: func(cmd *cobra.Command, args []string) error {
			return arguments(1, "ID")(cmd, args[:min(1, len(args))])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				deleted, err := s.DeleteMessages(ctx, o.queue, args)
				missed := false
				for i, was := range deleted {
					missed = missed || !was
					if err := o.printResult(args[i], was); err != nil {
						return err
					}
				}
				return missedOr(missed, err)
			})
		},
	}
}

const rsmqVisibilityHelp = `Make a message visible so many seconds from now, whether it is hidden or not and whoever holds it,
and print 1 or 0: 0 says that it was not there, and makes the exit code 1.`

const rsmqVisibilityExample = `  xstreamq rsmq visibility -q orders fzr4l5uu8rA8cYOoLq9vC5kDH1xiUvOj 600
  xstreamq rsmq vs -q orders fzr4l5uu8rA8cYOoLq9vC5kDH1xiUvOj 0`

func newRSMQVisibility(o *rsmqOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "visibility ID SECONDS",
		Aliases: []string{"vs"},
		Short:   "Change when a message becomes visible",
		Long:    rsmqVisibilityHelp,
		Example: rsmqVisibilityExample,
		Args:    arguments(2, "ID", "SECONDS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, ok := rsmqNumber(args[1])
			if !ok {
				return usageError{fmt.Errorf("EINVALIDVT: invalid message vt. Please define a numeric visibility time, not %q", args[1])}
			}
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				was, err := s.ChangeMessageVisibility(ctx, o.queue, args[0], *ofRSMQSeconds(n))
				if err != nil {
					return err
				}
				return missedOr(!was, o.printResult(args[0], was))
			})
		},
	}
}

// rsmqResultRow is the outcome for a message, for --json.
type rsmqResultRow struct {
	ID     string `json:"id"`
	Result int    `json:"result"`
}

func (o *rsmqOptions) printResult(id string, was bool) error {
	result := 0
	if was {
		result = 1
	}
	if o.app.json {
		return o.app.print(rsmqResultRow{id, result})
	}
	_, err := fmt.Fprintln(o.app.out, result)
	return err
}

// missedOr is the error, or else what makes the exit code 1 when a message was not there.
func missedOr(missed bool, err error) error {
	if err == nil && missed {
		return errQuiet
	}
	return err
}
