package cli

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const lsHelp = `List every queue and group in the registry, and the groups that are on the stream of such a queue
without being registered. With QUEUE it lists the groups of that queue alone, registered or not.

BACKLOG is what the group has not been given yet, PENDING what its workers hold, RETRY what waits
for a worker again, BACKOFF what failed and waits for its next try, DELAYED what was published to
the queue with a delay and is not due yet, DEAD the dead letters. WORKERS counts the live ones, LAST
SEEN is how long ago one noted itself, which each does every minute, by the clock of this machine.
NOTE says what is not in order:

  not on the queue      registered, but its consumer group is gone; the queue is not trimmed until
                        it is back or forgotten
  not in the registry   another program made it, or the registry was lost
  unreadable row        the registry has no settings of it
  a foreign name        another program made it, under a name that no group of a queue can have

A queue that no group is registered for, perhaps because no worker ever came, is not in the
registry: --scan finds it too, by a walk through all keys of Redis, which takes seconds where there
are millions. Its note is "no group" where it has none at all.

A group that Redis refuses to look at (a key of the wrong type, no permission) is listed with the
reason, and makes the exit code 1.

Nothing is changed. It costs some five short calls per group; where Redis does not know the backlog
it is counted, which takes about a second per 500,000 entries.`

const lsExample = `  xstreamq ls
  xstreamq ls orders
  xstreamq ls --scan
  xstreamq ls --json | jq -r 'select(.dead > 0) | "\(.queue) \(.group) \(.dead)"'`

func newLs(a *app) *cobra.Command {
	var empty emptiness
	var scan scanning
	cmd := &cobra.Command{
		Use:               "ls [QUEUE]",
		Short:             "List queues and groups",
		Long:              lsHelp,
		Example:           lsExample,
		Args:              arguments(0, "QUEUE"),
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := scan.check(argument(args, 0)); err != nil {
				return err
			}
			return a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				groups, err := listed(ctx, client, argument(args, 0))
				if err == nil {
					groups, err = scan.addViews(ctx, client, groups)
				}
				if err != nil {
					return err
				}
				return a.listGroups(ctx, client, overview{groups: groups, workers: true}, empty)
			})
		},
	}
	empty.addFlag(cmd.Flags())
	scan.addFlag(cmd.Flags())
	return cmd
}

const noGroups = "no group has subscribed yet; are --url and --prefix right?"

// listed finds the groups of one queue, or of all in the registry.
func listed(ctx context.Context, client *xstreamq.Client, queue string) ([]groupView, error) {
	if queue == "" {
		return allGroups(ctx, client)
	}
	registered, err := client.Registered(ctx)
	if err != nil {
		return nil, err
	}
	registered = slices.DeleteFunc(registered, func(r xstreamq.Registration) bool { return r.Queue != queue })
	return groupsOf(ctx, client.Groups, queue, registered)
}

// lsRow is a group for --json.
type lsRow struct {
	Queue       string  `json:"queue"`
	Group       *string `json:"group"`
	GroupBase64 []byte  `json:"group_base64,omitempty"`
	Registered  bool    `json:"registered"`
	Present     *bool   `json:"present"` // null where it cannot be told
	LastSeen    *string `json:"last_seen"`
	LiveWorkers *int    `json:"live_workers"`
	*counts             // none where there is an error
	Error       string  `json:"error,omitempty"`
}

func (a *app) listGroups(ctx context.Context, client *xstreamq.Client, found overview, empty emptiness) error {
	out := a.newList("queue", "group", "backlog", "pending", "retry", "backoff", "delayed", "dead", "workers", "last seen", "note")
	out.wrapLast()
	defer out.close()
	err := found.show(ctx, client, func(v *groupView) error {
		r := v.registration
		row := lsRow{Queue: r.Queue, Registered: v.registered, LastSeen: stamp(r.LastSeen)}
		if r.Group != "" {
			row.Group, row.GroupBase64 = exact(r.Group)
		}
		if v.present || v.err == nil {
			row.Present = &v.present
		}
		if v.err != nil {
			row.Error = v.note()
			return out.add(row, r.Queue, or(r.Group), absent, absent, absent, absent, absent, absent, absent, ago(r.LastSeen), row.Error)
		}
		row.LiveWorkers, row.counts = &v.live, newCounts(v.depth)
		d := v.depth
		if r.Group == "" {
			row.Present, row.LiveWorkers = nil, nil
			return out.add(row, r.Queue, absent, count(d.Backlog), absent, absent, absent, count(d.Delayed), absent, absent, absent, v.note())
		}
		return out.add(row, r.Queue, r.Group, count(d.Backlog), count(d.Pending), count(d.Retry), count(d.Backoff), count(d.Delayed),
			count(d.Dead), strconv.Itoa(v.live), ago(r.LastSeen), v.note())
	})
	if closed := out.close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return empty.end(a, len(found.groups), noGroups)
}

// note says what is not in order with a group.
func (v *groupView) note() string {
	switch {
	case v.foreign():
		return "a foreign name"
	case v.err == nil && v.registration.Group == "":
		return "no group"
	case v.err != nil:
		return explain(v.err)
	case !v.registered:
		return "not in the registry"
	case !v.present:
		return "not on the queue"
	case v.registration.LastSeen.IsZero():
		return "unreadable row"
	}
	return ""
}
