package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/rsmqmigrate"
	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqMigrateHelp = `Move the messages of an RSMQ queue to a queue of xstreamq on the same Redis, while both are in use.
--ns says where the RSMQ queue is, and --prefix where the other one.

Visible messages come in the order in which RSMQ would deliver them, and delayed ones become due
when they would have. Each message carries the headers rsmq-id, rsmq-rc (how often RSMQ delivered
it) and rsmq-sent (when it was sent, in ms since 1970). The RSMQ queue stays: messages that are
still sent to it are moved too, until it holds none that can be moved.

Messages in flight, that is, received and hidden, stay, since somebody works on them. With
--in-flight wait it waits until each of them was deleted, or came back and was moved; --timeout
bounds that. A message that lost its body always stays, and is counted.

Each message is moved in one step. Where it is stopped, or dies, run it again: nothing is lost and
nothing doubled. It shows what it would move and asks; --yes is the answer where nobody can be
asked. A delayed message needs a running worker of the new queue to become due.`

const rsmqMigrateExample = `  xstreamq rsmq migrate orders --to orders --dry-run
  xstreamq rsmq migrate orders --to orders
  xstreamq rsmq migrate orders --to orders --in-flight wait --timeout 10m --yes`

// What becomes of messages in flight.
const (
	leaveInFlight = "leave"
	waitInFlight  = "wait"
)

// migratePoll is how often those in flight are looked at.
const migratePoll = 500 * time.Millisecond

type rsmqMigrateOptions struct {
	*rsmqOptions
	to       string
	inFlight string
	dryRun   bool
	yes      bool
}

func newRSMQMigrate(shared *rsmqOptions) *cobra.Command {
	o := rsmqMigrateOptions{rsmqOptions: shared}
	cmd := &cobra.Command{
		Use:     "migrate QUEUE",
		Short:   "Move the messages of an RSMQ queue to a queue of xstreamq",
		Long:    rsmqMigrateHelp,
		Example: rsmqMigrateExample,
		Args:    arguments(1, "QUEUE"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.completeQueues(cmd, args, start)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			o.queue = args[0]
			return o.onQueue(cmd, rsmq.Config{}, o.migrate)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "the `NAME` of the queue of xstreamq")
	flags.StringVar(&o.inFlight, "in-flight", leaveInFlight, "what to do about messages that were received and are hidden: leave or wait")
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what would be moved, and move nothing")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	_ = cmd.RegisterFlagCompletionFunc("in-flight", cobra.FixedCompletions([]string{leaveInFlight, waitInFlight}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *rsmqMigrateOptions) check() error {
	if err := o.noQueueFlag("the queue is its argument"); err != nil {
		return err
	}
	if o.to == "" {
		return usageError{errors.New("--to is missing: the name of the queue of xstreamq")}
	}
	if bad := keys.Bad(o.to, keys.MaxName); bad != "" {
		return usageError{fmt.Errorf("--to: the name %.200q %s", o.to, bad)}
	}
	if o.inFlight != leaveInFlight && o.inFlight != waitInFlight {
		return usageError{fmt.Errorf("--in-flight is %q; it may be %s or %s", o.inFlight, leaveInFlight, waitInFlight)}
	}
	return nil
}

func (o *rsmqMigrateOptions) migrate(ctx context.Context, s rsmqSession) error {
	if _, err := s.GetQueueAttributes(ctx, o.queue); err != nil {
		return err
	}
	queues := rsmqmigrate.Queues{Namespace: o.namespace, Name: o.queue, Prefix: o.app.conn.prefix, To: o.to}
	found, err := rsmqmigrate.Survey(ctx, s.redis, queues)
	if err != nil {
		return fmt.Errorf("look at RSMQ queue %s: %w", o.queue, err)
	}
	if o.dryRun {
		return o.report(found, "would move", o.row(found, true))
	}
	total := found.Visible + found.Delayed
	if o.inFlight == waitInFlight {
		total += found.InFlight
	}
	if total > 0 {
		if err := o.app.confirm("move "+o.sentence(found), o.yes); err != nil {
			return err
		}
	}
	bar := o.app.newProgress("messages", int(total))
	defer bar.close()
	moved, err := o.moveAll(ctx, s, queues, bar)
	bar.close()
	if err != nil {
		if n := int(moved.Visible + moved.Delayed); n > 0 || ctx.Err() != nil {
			fmt.Fprintf(o.app.err, "stopped: %s moved so far; run it again to go on\n", plural(n, "message", "messages"))
		}
		return fmt.Errorf("move RSMQ queue %s: %w", o.queue, err)
	}
	return o.report(moved, "moved", o.row(moved, false))
}

// moveAll moves what there is and, with --in-flight wait, what comes back, until nothing is in flight.
func (o *rsmqMigrateOptions) moveAll(ctx context.Context, s rsmqSession, queues rsmqmigrate.Queues, bar *progress) (rsmqmigrate.Counts, error) {
	var total rsmqmigrate.Counts
	poll := time.NewTicker(migratePoll)
	defer poll.Stop()
	told, flying := false, int64(0) // as the last whole round saw it
	for {
		before := total.Visible + total.Delayed
		n, err := rsmqmigrate.Move(ctx, s.redis, queues, func(moved int64) { bar.set(int(before + moved)) })
		total.Visible += n.Visible
		total.Delayed += n.Delayed
		total.InFlight, total.NoBody = n.InFlight, n.NoBody
		switch {
		case err != nil && flying > 0 && ctx.Err() != nil:
			return total, stillInFlight(flying, ctx.Err())
		case err != nil || n.InFlight == 0 || o.inFlight == leaveInFlight:
			return total, err
		}
		flying = n.InFlight
		if !told && !isTerminal(o.app.err) {
			told = true
			fmt.Fprintf(o.app.err, "waiting for %s in flight\n", plural(int(flying), "message", "messages"))
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return total, stillInFlight(flying, ctx.Err())
		}
	}
}

func stillInFlight(n int64, why error) error {
	return fmt.Errorf("%s still in flight: %w", plural(int(n), "message is", "messages are"), why)
}

// sentence says what is moved and what stays.
func (o *rsmqMigrateOptions) sentence(n rsmqmigrate.Counts) string {
	text := fmt.Sprintf("%s of RSMQ queue %s to queue %s (%d visible, %d delayed)",
		plural(int(n.Visible+n.Delayed), "message", "messages"), o.queue, o.to, n.Visible, n.Delayed)
	if n.InFlight > 0 && o.inFlight == waitInFlight {
		text += fmt.Sprintf("; %d in flight when they come back", n.InFlight)
	} else if n.InFlight > 0 {
		text += fmt.Sprintf("; %d in flight stay", n.InFlight)
	}
	if n.NoBody > 0 {
		text += fmt.Sprintf("; %d without a body stay", n.NoBody)
	}
	return text
}

// rsmqMigrateRow is the outcome, for --json.
type rsmqMigrateRow struct {
	Namespace string `json:"namespace"`
	Queue     string `json:"queue"`
	To        string `json:"to"`
	DryRun    bool   `json:"dry_run,omitempty"`
	Visible   int64  `json:"visible"` // moved, or with --dry-run to be moved; so Delayed
	Delayed   int64  `json:"delayed"`
	InFlight  int64  `json:"in_flight"` // left; so NoBody
	NoBody    int64  `json:"no_body"`
}

func (o *rsmqMigrateOptions) row(n rsmqmigrate.Counts, dry bool) rsmqMigrateRow {
	return rsmqMigrateRow{
		Namespace: o.namespace, Queue: o.queue, To: o.to, DryRun: dry,
		Visible: n.Visible, Delayed: n.Delayed, InFlight: n.InFlight, NoBody: n.NoBody,
	}
}

func (o *rsmqMigrateOptions) report(n rsmqmigrate.Counts, did string, row rsmqMigrateRow) error {
	if o.app.json {
		return o.app.print(row)
	}
	_, err := fmt.Fprintf(o.app.out, "%s %s\n", did, o.sentence(n))
	return err
}
