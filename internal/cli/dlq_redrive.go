package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const dlqRedriveHelp = `Give dead letters to their group again: those with the IDs given, or all that the filters choose,
oldest first.

Each one moves in one step, so that it is always in one place: also when this command is killed in
the middle, or runs twice at once. Then run it again. A redriven message comes to its own group
alone, with its first id, its body and fresh budgets, and runs even where its group remembers that
it was handled. With --to-queue it is published to the queue as a new message for all groups
instead. It works on what is dead when it begins, so it ends even if handlers go on failing.

Without IDs it shows what it would redrive and asks; --yes is the answer where nobody can be asked.
--canary N redrives N first and goes on only when all of these were handled: not when one of them
died again, not when no worker of the group has been alive for 10s, and not after --canary-timeout.
Those N then stay redriven. Where there are fewer than N they are all redriven, and nothing waits
for them.

Dead letters without a body (no-body, body-lost) cannot be redriven and stay. They, and others that
Redis refuses, make the exit code 1; those that somebody else redrove or purged meanwhile do not.
With --json each dead letter is a line, as soon as it moved: its id, the result redriven,
unredrivable or gone, and why.`

const dlqRedriveExample = `  xstreamq dlq redrive orders shipping 1735689600000-0 1735689600000-1
  xstreamq dlq redrive orders shipping --reason failed --error "connection refused" --dry-run
  xstreamq dlq redrive orders shipping --canary 10 --rate 50 --yes`

type redriveOptions struct {
	choice
	toQueue       bool
	rate          float64
	canary        int
	canaryTimeout span
}

func newDLQRedrive(a *app) *cobra.Command {
	o := redriveOptions{choice: choice{verb: "redrive"}}
	cmd := &cobra.Command{
		Use:               "redrive QUEUE GROUP [ID...]",
		Short:             "Give dead letters to their group again",
		Long:              dlqRedriveHelp,
		Example:           dlqRedriveExample,
		Args:              choiceArguments,
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(cmd, args, "rate", "canary", "canary-timeout"); err != nil {
				return err
			}
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			return a.work(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return o.run(ctx, a, client)
			})
		},
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.toQueue, "to-queue", false, "publish them to the queue as new messages, for all groups")
	flags.Float64Var(&o.rate, "rate", 0, "redrive this many per second (default: as many as can be)")
	flags.IntVar(&o.canary, "canary", 0, "redrive this many first, and the rest only when all of these were handled")
	flags.Var(&o.canaryTimeout, "canary-timeout", "how long the canary may take, its retries included (default: 5m)")
	return cmd
}

func (o *redriveOptions) check(cmd *cobra.Command) error {
	changed := cmd.Flags().Changed
	switch {
	case changed("rate") && !(o.rate > 0):
		return errors.New("--rate must be above 0")
	case changed("canary") && o.canary < 1:
		return errors.New("--canary must be above 0")
	case o.canary > 0 && o.toQueue:
		return errors.New("--canary does not go with --to-queue: new messages cannot be told from others")
	case changed("canary-timeout") && o.canary == 0:
		return errors.New("--canary-timeout is for --canary")
	}
	return nil
}

func (o *redriveOptions) run(ctx context.Context, a *app, client *xstreamq.Client) error {
	to := xstreamq.RedriveOptions{ToQueue: o.toQueue}
	if a.json {
		limited, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		ctx, to.Each = limited, a.redriveRows(stop)
	}
	if len(o.ids) > 0 && !o.dryRun {
		result, err := client.Redrive(ctx, o.queue, o.group, o.ids, to)
		return o.report(a, result, orUnprinted(ctx, err))
	}
	all := xstreamq.RedriveAllOptions{
		RedriveOptions: to, Filter: o.filter, Limit: o.limit, Rate: o.rate, Canary: o.canary, CanaryTimeout: time.Duration(o.canaryTimeout),
	}
	if o.dryRun || !o.yes {
		seen, err := o.look(ctx, a, client, bodiless)
		if err != nil {
			return err
		}
		switch {
		case o.dryRun:
			return o.reportDry(a, &seen)
		case len(seen.Redriven) == 0:
			if err := a.printDry(seen.RedriveResult); err != nil {
				return err
			}
			return o.report(a, seen.RedriveResult, nil)
		}
		if err := a.confirm(o.question(&seen), false); err != nil {
			return err
		}
		all.Filter = seen.upTo(o.filter)
	}
	bar := a.newProgress("dead letters", o.total(ctx, a, client))
	defer bar.close()
	all.Progress = func(looked, _ int) { bar.set(looked) }
	result, err := client.RedriveAll(ctx, o.queue, o.group, all)
	bar.close()
	return o.report(a, result, orUnprinted(ctx, err))
}

// bodiless says why a dead letter with nothing to give to a handler stays.
func bodiless(d *xstreamq.DeadMessage) string {
	switch {
	case d.Body != nil:
		return ""
	case d.Reason == xstreamq.BodyLost:
		return string(xstreamq.BodyLost)
	}
	return string(xstreamq.NoBody)
}

func (o *redriveOptions) question(seen *survey) string {
	where := ""
	if o.toQueue {
		where = " to the queue, for all groups"
	}
	which := byReason(seen.reasons)
	if n := len(seen.Unredrivable); n > 0 {
		which += fmt.Sprintf("; %d without a body will stay", n)
	}
	return fmt.Sprintf("redrive %s of %s%s (%s)", deadLetters(len(seen.Redriven)), &o.choice, where, which)
}

// redriveRow is what became of one dead letter, for --json.
type redriveRow struct {
	ID     string `json:"id"`
	Result string `json:"result"`
	Reason string `json:"reason,omitempty"`
}

// report says what was done, also when it ended in an error.
func (o *redriveOptions) report(a *app, result xstreamq.RedriveResult, err error) error {
	if errors.Is(err, xstreamq.ErrNoQueue) || errors.Is(err, xstreamq.ErrNoGroup) {
		return err // what it says of the ids is no news then
	}
	done := len(result.Redriven)
	if !a.json && (err == nil || done > 0) {
		fmt.Fprintf(a.out, "redrove %s of %s\n", deadLetters(done), &o.choice)
	}
	stuck := a.warnUnredrivable(result.Unredrivable)
	switch {
	case err != nil:
		return a.stopped("redriven", done, err)
	case stuck > 0:
		return errQuiet
	case done+len(result.Unredrivable) == 0 && o.empty.exit:
		return errEmpty
	}
	return nil
}

func (o *redriveOptions) reportDry(a *app, seen *survey) error {
	if err := a.printDry(seen.RedriveResult); err != nil {
		return err
	}
	if !a.json {
		details := ""
		if len(seen.reasons) > 0 {
			details = " (" + byReason(seen.reasons) + ")"
		}
		fmt.Fprintf(a.out, "would redrive %s of %s%s\n", deadLetters(len(seen.Redriven)), &o.choice, details)
	}
	if a.warnUnredrivable(seen.Unredrivable) > 0 {
		return errQuiet
	}
	if len(seen.Redriven)+len(seen.Unredrivable) == 0 && o.empty.exit {
		return errEmpty
	}
	return nil
}

// redriveRows prints each dead letter with --json as soon as it is known what became of it, and stops where that cannot be printed.
func (a *app) redriveRows(stop context.CancelCauseFunc) func(id, why string) {
	return func(id, why string) {
		if err := a.print(newRedriveRow(id, why, "redriven")); err != nil {
			stop(err)
		}
	}
}

// orUnprinted is err, or that of the standard output where this is why it stopped.
func orUnprinted(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.As(cause, new(*stdoutError)) {
		return cause
	}
	return err
}

func newRedriveRow(id, why, done string) redriveRow {
	switch why {
	case "":
		return redriveRow{ID: id, Result: done}
	case xstreamq.Gone:
		return redriveRow{ID: id, Result: "gone"}
	}
	return redriveRow{ID: id, Result: "unredrivable", Reason: why}
}

// printDry prints what --json shows of a dry run.
func (a *app) printDry(result xstreamq.RedriveResult) error {
	if !a.json {
		return nil
	}
	for _, id := range result.Redriven {
		if err := a.print(newRedriveRow(id, "", "would-redrive")); err != nil {
			return err
		}
	}
	for _, u := range result.Unredrivable {
		if err := a.print(newRedriveRow(u.ID, u.Reason, "")); err != nil {
			return err
		}
	}
	return nil
}

// unredrivableShown is how many are named on standard error.
const unredrivableShown = 20

// warnUnredrivable names those that were not redriven, and returns how many of them are still there.
func (a *app) warnUnredrivable(left []xstreamq.Unredrivable) (stuck int) {
	for i, u := range left {
		if u.Reason != xstreamq.Gone {
			stuck++
		}
		switch {
		case i >= unredrivableShown:
		case u.Reason == xstreamq.Gone:
			fmt.Fprintf(a.err, "warning: %s is gone: redriven or purged already\n", printable(u.ID))
		default:
			fmt.Fprintf(a.err, "not redriven: %s stays: %s\n", printable(u.ID), printable(u.Reason))
		}
	}
	if more := len(left) - unredrivableShown; more > 0 {
		fmt.Fprintf(a.err, "and %d more; --json lists them all\n", more)
	}
	return stuck
}
