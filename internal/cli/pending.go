package cli

import (
	"context"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const pendingHelp = `List the messages that workers of a group hold now: those of the queue first, then those of the
retry stream, each by id.

IDLE is how long ago the lease was renewed. A running worker renews it, so a long one belongs to a
worker that is gone, whose messages are handed to another one when the lease runs out. DELIVERIES is
how often Redis handed this entry out; 0 marks one that was given back unharmed. How often a message
was tried is in the message: see peek.

Nothing is changed. The list is read in pages and printed as it comes, all of it unless --limit says
otherwise; what changes meanwhile may be in it or not. However long it is, no time ends it but that
of --timeout.`

const pendingExample = `  xstreamq pending orders shipping
  xstreamq pending orders shipping --min-idle 5m
  xstreamq pending orders shipping --json | jq -r .consumer | sort | uniq -c`

type pendingOptions struct {
	consumer string
	minIdle  span
	limit    int
	empty    emptiness
}

func newPending(a *app) *cobra.Command {
	var o pendingOptions
	cmd := &cobra.Command{
		Use:               "pending QUEUE GROUP",
		Short:             "List the messages that workers hold",
		Long:              pendingHelp,
		Example:           pendingExample,
		Args:              arguments(2, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLimit(cmd, o.limit); err != nil {
				return err
			}
			return a.work(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return a.listPending(client.Pending(ctx, args[0], args[1]), o)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.consumer, "consumer", "", "only what this consumer holds")
	flags.Var(&o.minIdle, "min-idle", "only what was not renewed for this long, such as 90s, 12h or 7d")
	addLimit(flags, &o.limit)
	o.empty.addFlag(flags)
	return cmd
}

// pendingRow is a pending message for --json.
type pendingRow struct {
	ID             string         `json:"id"`
	Place          xstreamq.Place `json:"place"`
	Consumer       *string        `json:"consumer"`
	ConsumerBase64 []byte         `json:"consumer_base64,omitempty"`
	IdleMS         int64          `json:"idle_ms"`
	Deliveries     int64          `json:"deliveries"`
}

func (a *app) listPending(found iter.Seq2[xstreamq.PendingMessage, error], o pendingOptions) error {
	rows := 0
	out := a.newList("id", "place", "consumer", "idle", "deliveries")
	defer out.close()
	for m, err := range found {
		if err != nil {
			return err
		}
		if o.consumer != "" && m.Consumer != o.consumer || m.Idle < time.Duration(o.minIdle) {
			continue
		}
		row := pendingRow{ID: m.ID, Place: m.From, IdleMS: m.Idle.Milliseconds(), Deliveries: m.Deliveries}
		row.Consumer, row.ConsumerBase64 = exact(m.Consumer)
		if err := out.add(row, m.ID, string(m.From), m.Consumer, short(m.Idle), strconv.FormatInt(m.Deliveries, 10)); err != nil {
			return err
		}
		if rows++; rows == o.limit {
			break
		}
	}
	if err := out.close(); err != nil {
		return err
	}
	return o.empty.end(a, rows, "no such message is pending")
}
