package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqListHelp = `List the names of the queues, one per line. Nothing is printed when there are none.`

const rsmqListExample = `  xstreamq rsmq listqueues
  xstreamq rsmq ls --ns staging --json`

func newRSMQList(o *rsmqOptions) *cobra.Command {
	var empty emptiness
	cmd := &cobra.Command{
		Use:     "listqueues",
		Aliases: []string{"ls"},
		Short:   "List the queues",
		Long:    rsmqListHelp,
		Example: rsmqListExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.with(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				names, err := s.ListQueues(ctx)
				if err != nil {
					return err
				}
				slices.Sort(names)
				for _, name := range names {
					if err := o.printName(name); err != nil {
						return err
					}
				}
				return empty.end(o.app, len(names), "no queues in this namespace; mind --url and --ns")
			})
		},
	}
	empty.addFlag(cmd.Flags())
	return cmd
}

// rsmqNameRow is a queue, for --json.
type rsmqNameRow struct {
	Queue       *string `json:"queue"`
	QueueBase64 []byte  `json:"queue_base64,omitempty"`
}

func (o *rsmqOptions) printName(name string) error {
	if o.app.json {
		var row rsmqNameRow
		row.Queue, row.QueueBase64 = exact(name)
		return o.app.print(row)
	}
	_, err := fmt.Fprintln(o.app.out, printable(name))
	return err
}

const rsmqCountHelp = `Print how many messages a queue has, hidden and delayed ones too.`

const rsmqCountExample = `  xstreamq rsmq count -q orders`

func newRSMQCount(o *rsmqOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "count",
		Short:   "Count the messages of a queue",
		Long:    rsmqCountHelp + "\n\nA queue that does not exist is an error, queueNotFound, with exit code 1.",
		Example: rsmqCountExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				found, err := s.GetQueueAttributes(ctx, o.queue)
				if err != nil {
					return err
				}
				if o.app.json {
					return o.app.print(rsmqCountRow{o.queue, found.Messages})
				}
				_, err = fmt.Fprintln(o.app.out, found.Messages)
				return err
			})
		},
	}
}

// rsmqCountRow is how many messages a queue has, for --json.
type rsmqCountRow struct {
	Queue    string `json:"queue"`
	Messages int64  `json:"msgs"`
}

const rsmqStatsHelp = `Print the attributes of a queue as one line of JSON: vt and delay in seconds, maxsize in UTF-16 code
units (-1: no limit), totalrecv and totalsent, created and modified as seconds since 1970, msgs (all
messages), hiddenmsgs as the Node package counts them, with up to a second's worth of visible ones
in it, and visiblemsgs, which is exact. An attribute that the queue lost is null.`

const rsmqStatsExample = `  xstreamq rsmq stats -q orders
  xstreamq rsmq stats -q orders | jq .visiblemsgs`

func newRSMQStats(o *rsmqOptions) *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Print the attributes and counts of a queue",
		Long:    rsmqStatsHelp,
		Example: rsmqStatsExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				found, err := s.GetQueueAttributes(ctx, o.queue)
				if err != nil {
					return err
				}
				return o.app.print(found)
			})
		},
	}
}

const rsmqAttributesHelp = `Set an attribute of a queue: vt, delay (both in seconds) or maxsize (in UTF-16 code units, 1024 to
65536, or -1 for no limit). It prints all attributes, as stats does. Messages that are there stay as
they are.`

const rsmqAttributesExample = `  xstreamq rsmq attributes -q orders vt 60
  xstreamq rsmq attr -q orders maxsize -- -1`

func newRSMQAttributes(o *rsmqOptions) *cobra.Command {
	return &cobra.Command{
		Use:       "attributes NAME VALUE",
		Aliases:   []string{"attr"},
		Short:     "Set an attribute of a queue",
		Long:      rsmqAttributesHelp,
		Example:   rsmqAttributesExample,
		Args:      arguments(2, "NAME", "VALUE"),
		ValidArgs: []string{"vt", "delay", "maxsize"},
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := rsmqChanges(args[0], args[1])
			if err != nil {
				return err
			}
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				now, err := s.SetQueueAttributes(ctx, o.queue, changes)
				if err != nil {
					return err
				}
				return o.app.print(now)
			})
		},
	}
}

// rsmqChanges is one attribute to set.
func rsmqChanges(name, value string) (rsmq.QueueChanges, error) {
	var changes rsmq.QueueChanges
	n, ok := rsmqNumber(value)
	switch name {
	case "vt":
		changes.VisibilityTimeout = ofRSMQSeconds(n)
	case "delay":
		changes.Delay = ofRSMQSeconds(n)
	case "maxsize":
		changes.MaxSize = ofRSMQSize(n)
	default:
		return changes, usageError{fmt.Errorf("EINVALIDATTRNAME: invalid attribute name %q. Only `vt`, `delay`, `maxsize` are allowed", name)}
	}
	if !ok {
		return changes, usageError{fmt.Errorf("EINVALIDVT: the value of %s is no number: %q", name, value)}
	}
	return changes, nil
}
