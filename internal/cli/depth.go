package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const depthHelp = `Count the messages of all registered groups, of the groups of QUEUE, or of one GROUP. A queue
without groups has a line of its own.

LENGTH is the number of entries in the queue's stream, those that are finished and not trimmed yet
among them. BACKLOG is what the group has not been given yet, PENDING what its workers hold, RETRY
what waits for a worker again, BACKOFF what failed and waits for its next try, DELAYED what was
published to the queue with a delay and is not due yet, for all groups, and DEAD the dead letters.
OLDEST is the age of the oldest message in the backlog, pending or to retry.

The counts of one GROUP are of one moment; in a list, a message that moved while it was made may
count twice. Where Redis does not know the backlog, or what it says cannot be, the entries are
counted in pages, which takes about a second per 500,000; after a million it is "unknown", and null
with --json. Where no number makes sense there is "-", and null with --json. A group that is
registered and not on the queue would be given all of the queue.

Nothing is changed. A group that Redis refuses to look at (a key of the wrong type, no permission)
has "-" throughout, and with --json an error in its line; it makes the exit code 1.`

const depthExample = `  xstreamq depth
  xstreamq depth orders shipping
  xstreamq depth orders --json | jq '.backlog + .pending + .retry + .backoff'`

func newDepth(a *app) *cobra.Command {
	var empty emptiness
	cmd := &cobra.Command{
		Use:               "depth [QUEUE [GROUP]]",
		Short:             "Count the messages of queues and groups",
		Long:              depthHelp,
		Example:           depthExample,
		Args:              arguments(0, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				found, err := measured(ctx, client, argument(args, 0), argument(args, 1))
				if err != nil {
					return err
				}
				return a.listDepths(ctx, client, found, empty)
			})
		},
	}
	empty.addFlag(cmd.Flags())
	return cmd
}

// measured finds what depth is to count.
func measured(ctx context.Context, client *xstreamq.Client, queue, group string) (overview, error) {
	one := overview{groups: []groupView{{registration: xstreamq.Registration{Queue: queue, Group: group}}}, one: true}
	var found []groupView
	var err error
	switch {
	case group != "":
		return one, nil
	case queue == "":
		found, err = allGroups(ctx, client)
		found = slices.DeleteFunc(found, func(v groupView) bool { return !v.registered })
	default:
		found, err = groupsOf(ctx, client.Groups, queue, nil)
		if err == nil && len(found) == 0 {
			return one, nil
		}
	}
	return overview{groups: found}, err
}

// counts is how many messages are where, for --json.
type counts struct {
	Length  int64  `json:"length"`
	Backlog *int64 `json:"backlog"`
	Pending *int64 `json:"pending"`
	Retry   *int64 `json:"retry"`
	Backoff *int64 `json:"backoff"`
	Delayed int64  `json:"delayed"`
	Dead    *int64 `json:"dead"`
	// OldestMS is null when there is no message that waits.
	OldestMS *int64 `json:"oldest_ms"`
}

func newCounts(d xstreamq.Depth) *counts {
	c := &counts{Length: d.Length, Backlog: known(d.Backlog), Delayed: d.Delayed, OldestMS: millis(d.Oldest)}
	if d.Group != "" {
		c.Pending, c.Retry, c.Backoff, c.Dead = &d.Pending, &d.Retry, &d.Backoff, &d.Dead
	}
	return c
}

// depthRow is a group for --json, or a queue that has none.
type depthRow struct {
	Queue       string  `json:"queue"`
	Group       *string `json:"group"`
	GroupBase64 []byte  `json:"group_base64,omitempty"`
	*counts             // none where there is an error
	Error       string  `json:"error,omitempty"`
}

func (a *app) listDepths(ctx context.Context, client *xstreamq.Client, found overview, empty emptiness) error {
	out := a.newList("queue", "group", "length", "backlog", "pending", "retry", "backoff", "delayed", "dead", "oldest")
	defer out.close()
	err := found.show(ctx, client, func(v *groupView) error {
		r := v.registration
		row := depthRow{Queue: r.Queue}
		if r.Group != "" {
			row.Group, row.GroupBase64 = exact(r.Group)
		}
		cells := []string{r.Queue, or(r.Group), absent, absent, absent, absent, absent, absent, absent, absent}
		if v.err != nil {
			row.Error = v.note()
			return out.add(row, cells...)
		}
		d := v.depth
		row.counts = newCounts(d)
		cells[2], cells[3], cells[7] = count(d.Length), count(d.Backlog), count(d.Delayed)
		if d.Group != "" {
			cells[4], cells[5], cells[6], cells[8] = count(d.Pending), count(d.Retry), count(d.Backoff), count(d.Dead)
		}
		if d.Oldest > 0 {
			cells[9] = short(d.Oldest)
		}
		return out.add(row, cells...)
	})
	if closed := out.close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return empty.end(a, len(found.groups), noGroups)
}
