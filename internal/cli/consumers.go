package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const consumersHelp = `List the names under which workers of a group read, with how many messages each one holds.

A running worker gives a sign of life at least every few seconds, by asking for messages or by
renewing a lease. IDLE is how long ago that was, and LIVE whether it was as lately as a running
worker does: within its lease or 15s, whichever is longer. One without leases gives none while all
its handlers are busy. LEASE is the length of its leases, which its name says; "-" where it has
none, or where another program made the name up.

Names of workers that are gone are in the list for some minutes, or while they hold something.
Nothing is changed.`

const consumersExample = `  xstreamq consumers orders shipping
  xstreamq consumers orders shipping --live --exit-empty || echo "nobody works on it"`

func newConsumers(a *app) *cobra.Command {
	var (
		live  bool
		empty emptiness
	)
	cmd := &cobra.Command{
		Use:               "consumers QUEUE GROUP",
		Short:             "List the workers of a group",
		Long:              consumersHelp,
		Example:           consumersExample,
		Args:              arguments(2, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				found, err := client.Consumers(ctx, args[0], args[1])
				if err != nil {
					return err
				}
				return a.listConsumers(found, live, empty)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&live, "live", false, "only those that are live")
	empty.addFlag(flags)
	return cmd
}

// consumerRow is a consumer for --json.
type consumerRow struct {
	Consumer       *string `json:"consumer"`
	ConsumerBase64 []byte  `json:"consumer_base64,omitempty"`
	Pending        int64   `json:"pending"`
	IdleMS         int64   `json:"idle_ms"`
	LeaseMS        *int64  `json:"lease_ms"`
	Live           bool    `json:"live"`
}

func (a *app) listConsumers(found []xstreamq.Consumer, live bool, empty emptiness) error {
	rows := 0
	out := a.newList("consumer", "pending", "idle", "lease", "live")
	defer out.close()
	for _, c := range found {
		if live && !c.Live {
			continue
		}
		lease := absent
		if c.Lease > 0 {
			lease = short(c.Lease)
		}
		row := consumerRow{Pending: c.Pending, IdleMS: c.Idle.Milliseconds(), LeaseMS: millis(c.Lease), Live: c.Live}
		row.Consumer, row.ConsumerBase64 = exact(c.Name)
		if err := out.add(row, c.Name, strconv.FormatInt(c.Pending, 10), short(c.Idle), lease, yes(c.Live)); err != nil {
			return err
		}
		rows++
	}
	if err := out.close(); err != nil {
		return err
	}
	return empty.end(a, rows, "no such consumer: no worker has read for this group lately")
}
