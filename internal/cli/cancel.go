package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const cancelHelp = `Take back messages that were published with a delay and are not due yet, by the ids that publish
printed. For each id it says whether it was cancelled. One that was not (it is due already, was
cancelled before, or never was) is not-found, and makes the exit code 1; so does what is no id of a
delayed message: invalid-id.`

const cancelExample = `  xstreamq cancel orders d1735689600000-9f86d081884c7d65
  xstreamq peek orders --from delayed --json --count 1000 | jq -r .id | xargs xstreamq cancel orders`

func newCancel(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "cancel QUEUE ID...",
		Short:   "Take back delayed messages",
		Long:    cancelHelp,
		Example: cancelExample,
		Args: func(cmd *cobra.Command, args []string) error {
			return arguments(2, "QUEUE", "ID")(cmd, args[:min(2, len(args))])
		},
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.work(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return a.cancel(ctx, client, args[0], args[1:])
			})
		},
	}
}

// cancelRow is the outcome for one id, for --json.
type cancelRow struct {
	ID       *string `json:"id"`
	IDBase64 []byte  `json:"id_base64,omitempty"`
	Result   string  `json:"result"`
}

func (a *app) cancel(ctx context.Context, client *xstreamq.Client, queue string, ids []string) error {
	out := a.newList("id", "result")
	defer out.close()
	missed := false
	for _, id := range ids {
		cancelled, err := client.Cancel(ctx, queue, id)
		row := cancelRow{Result: "cancelled"}
		row.ID, row.IDBase64 = exact(id)
		switch {
		case errors.Is(err, xstreamq.ErrInvalidMessage):
			row.Result = "invalid-id"
			fmt.Fprintf(a.err, "%s is no id of a delayed message, such as d1735689600000-9f86d081884c7d65\n", printable(id))
		case err != nil:
			return errors.Join(out.close(), err)
		case !cancelled:
			row.Result = "not-found"
		}
		missed = missed || !cancelled
		if err := out.add(row, id, row.Result); err != nil {
			return err
		}
	}
	if err := out.close(); err != nil {
		return err
	}
	if missed {
		return errQuiet
	}
	return nil
}
