package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const doctorHelp = `Look for what is or may become a problem, in Redis and in the queues, and say what to do about each
finding.

The server: version, mode, role and replicas, whether it takes writes, eviction, memory, append-only
file and snapshots, its clock, the round trip, and whether anybody may connect. Each queue:
registered groups that are missing from the stream, which keeps it from being trimmed, and groups
that nobody registered or that hold up trimming. Each group: messages that wait without a worker,
leases that ran out and that nobody takes over, long lists of pending messages, dead letters,
delayed messages that nobody delivers, registry rows that look forgotten, keys of a wrong type.

With QUEUE or QUEUE GROUP it looks at the server and at that queue or group alone. Of more than
1,000 groups it looks at the first 1,000, and in a very long registry it does not look for groups
that are missing from a stream or not registered; it says so.

Without QUEUE it finds those that a group is registered for; with --scan also all others, by a walk
through all keys of Redis, which takes seconds where there are millions, unless there are more than
1,000 groups already.

A finding is "ok", a "note" that may be meant so, a "warning" (messages may be lost or late one
day), or a "problem" (it is so now). The exit code is 1 if there is a problem; notes and warnings
alone exit with 0. What Redis does not let this user ask is one note, with the ACL rules that would
help. Nothing is changed. --json prints one object per finding.`

const doctorExample = `  xstreamq doctor
  xstreamq doctor orders shipping
  xstreamq doctor --json | jq -r 'select(.level == "problem") | .seen'`

func newDoctor(a *app) *cobra.Command {
	var scan scanning
	cmd := &cobra.Command{
		Use:               "doctor [QUEUE [GROUP]]",
		Short:             "Look for problems in Redis and the queues, and say what to do",
		Long:              doctorHelp,
		Example:           doctorExample,
		Args:              arguments(0, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := scan.check(argument(args, 0)); err != nil {
				return err
			}
			return a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return a.doctor(ctx, client, argument(args, 0), argument(args, 1), scan)
			})
		},
	}
	scan.addFlag(cmd.Flags())
	return cmd
}

// level is how bad a finding is.
type level string

const (
	levelOK      level = "ok"
	levelNote    level = "note"    // it may be meant so
	levelWarning level = "warning" // messages may be lost or late one day
	levelProblem level = "problem" // it is so now
)

// finding is one thing that was looked at.
type finding struct {
	Level       level   `json:"level"`
	Check       string  `json:"check"`
	Queue       string  `json:"queue,omitempty"`
	Group       *string `json:"group,omitempty"`
	GroupBase64 []byte  `json:"group_base64,omitempty"`
	Seen        string  `json:"seen"`
	Do          string  `json:"do,omitempty"`
}

// of says which queue and group a finding is about.
func (f finding) of(queue, group string) finding {
	f.Queue = queue
	if group != "" {
		f.Group, f.GroupBase64 = exact(group)
	}
	return f
}

// where is the queue, or the queue and group, for people.
func (f finding) where() string {
	switch {
	case f.Group != nil:
		return f.Queue + "/" + *f.Group
	case f.GroupBase64 != nil:
		return f.Queue + "/" + string(f.GroupBase64)
	}
	return f.Queue
}

func ok(check, seen string) finding { return finding{Level: levelOK, Check: check, Seen: seen} }
func note(check, seen, do string) finding {
	return finding{Level: levelNote, Check: check, Seen: seen, Do: do}
}
func warning(check, seen, do string) finding {
	return finding{Level: levelWarning, Check: check, Seen: seen, Do: do}
}
func problem(check, seen, do string) finding {
	return finding{Level: levelProblem, Check: check, Seen: seen, Do: do}
}

func (a *app) doctor(ctx context.Context, client *xstreamq.Client, queue, group string, scan scanning) error {
	server, err := a.inspectServer(ctx)
	if err != nil {
		return err
	}
	out := &findings{app: a, list: a.newList("level", "check", "where", "seen", "do")}
	defer out.list.close()
	for _, check := range serverChecks {
		if err := out.add(check(server)...); err != nil {
			return err
		}
	}
	if err := out.add(checkWrites(client.Health(ctx).Redis)); err != nil {
		return err
	}
	if err := a.doctorQueues(ctx, client, out, queue, group, scan, server); err != nil {
		return errors.Join(out.list.close(), err)
	}
	if err := out.list.close(); err != nil {
		return err
	}
	if out.problems > 0 {
		return errQuiet
	}
	return nil
}

func (a *app) inspectServer(ctx context.Context) (*serverState, error) {
	rc, err := a.server()
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	return askServer(ctx, rc)
}

// findings prints what was found as it is found, and counts the problems.
type findings struct {
	app      *app
	list     *list
	problems int
}

func (o *findings) add(found ...finding) error {
	for _, f := range found {
		if f.Level == levelProblem {
			o.problems++
		}
		if err := o.print(f); err != nil {
			return err
		}
	}
	return nil
}

// print writes one below the other on a terminal, which has no room for whole sentences side by side.
func (o *findings) print(f finding) error {
	if o.app.json || !isTerminal(o.app.out) {
		return o.list.add(f, string(f.Level), f.Check, or(f.where()), f.Seen, or(f.Do))
	}
	about := f.Check
	if where := f.where(); where != "" {
		about = where + ", " + about
	}
	return o.app.say(string(f.Level), about, f.Seen, f.Do)
}

// doctorMost is how many groups are looked at.
const doctorMost = 1000

func (a *app) doctorQueues(
	ctx context.Context, client *xstreamq.Client, out *findings, queue, group string, scan scanning, server *serverState,
) error {
	queues, left, err := findGroups(ctx, client, queue, group, doctorMost)
	if err == nil && left == 0 { // else groups that were left out would seem not to be registered
		queues, err = scan.addQueues(ctx, client, queues)
	}
	if err != nil {
		return err
	}
	groups := lookDeeper(ctx, client, queues, server.now)
	for _, q := range queues {
		if err := q.outage(); err != nil {
			return err
		}
		if err := out.add(a.checkQueue(q, server.now)...); err != nil {
			return err
		}
	}
	const do = "name a QUEUE, or a QUEUE and a GROUP"
	if left > 0 {
		seen := plural(left, "group of the registry was", "groups of the registry were") + " not looked at"
		if err := out.add(note("groups", seen, do)); err != nil {
			return err
		}
	}
	seen := "none is registered"
	if groups+len(queues) > 0 {
		seen = fmt.Sprintf("looked at %s of %s", plural(groups, "group", "groups"), plural(len(queues), "queue", "queues"))
	}
	return out.add(ok("groups", seen))
}

// lookDeeper looks at all groups, some at once, and returns how many there are.
func lookDeeper(ctx context.Context, client *xstreamq.Client, queues []*queueState, now time.Time) int {
	var groups []*groupState
	for _, q := range queues {
		groups = append(groups, q.groups...)
	}
	spread(len(groups), func(i int) {
		groups[i].look(ctx, client)
		groups[i].lookDeeper(ctx, client, now)
	})
	watch(ctx, client, queues)
	return len(groups)
}
