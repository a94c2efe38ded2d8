package cli

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const workHelp = `Run COMMAND once for each message of a group, with the body on its standard input.

Its exit code says what becomes of the message:

  0                 handled: the message is done
  65                a dead letter at once, reason "rejected"
  75                given back: it comes again after --backoff, and no budget is spent
  any other         failed, as after a signal: it is retried after a backoff, and a dead letter once
                    --retries are used up

The error of a retry or dead letter is how the command ended and the last 1 KiB of its standard
error, which is passed through as well. Its standard output is passed through; with --json it goes
to the standard error, and the standard output has an object for each delivery when its command has
ended: id, original_id, attempt, verdict, exit_code, duration_ms, error. The verdict is what is to
become of the message: ack, retry, dead, release; lost where another worker had it by then. It is
written to Redis after that, and tried again until it is. What could not be written by the end is an
error, with exit code 1, and comes again: so may a message whose verdict is ack. The last line of
the log counts what was written, and as "unwritten" what was not. Whether the command reads its
input does not matter.

A message that becomes a dead letter without a run of the command is told in the same way, with
exit_code null: an entry of another program that has no field "body", one that was deleted, and one
whose lost leases are used up.

The environment tells it about the message:

  XSTREAMQ_ID               id of this delivery; another one after each retry
  XSTREAMQ_ORIGINAL_ID      id that publish printed: it stays the same, so that work already done
                            can be recognized
  XSTREAMQ_QUEUE, XSTREAMQ_GROUP
  XSTREAMQ_ATTEMPT          retries + lost leases + 1
  XSTREAMQ_RETRIES          failures before this delivery
  XSTREAMQ_LOST_LEASES      workers that vanished with this message
  XSTREAMQ_PUBLISHED_AT     RFC 3339; empty when not known
  XSTREAMQ_HEADER_NAME      a header: its name in capitals, with "_" for all but A-Z, 0-9 and "_";
                            of two names that become the same, the first in the order of their bytes
  XSTREAMQ_HEADERS          all headers as a JSON object, exactly
  XSTREAMQ_HEADERS_BASE64   those that are not UTF-8, names and values in base64; not set when there
                            are none

It works until SIGINT, SIGTERM or SIGHUP, and then drains: what was not begun goes back at once, and
commands have --drain-timeout to end. Then they, and all children in their process groups, get
SIGTERM, and --kill-after later SIGKILL; their messages come again and no budget is spent. A second
signal kills them and ends the worker at once. Commands run in process groups of their own, so
Ctrl-C does not reach them; where whoever stops the worker stops its commands too, as systemd does,
that is no failure. With --max and --exit-when-empty it ends by itself, and commands are given all
the time they need. Ended in one of these ways it exits with 0, whatever became of the messages;
with 1 where it could not work, could not write what became of a message, or had to leave commands
behind.

A worker that dies with its commands running (SIGKILL) loses their messages to another worker when
--visibility-timeout is over, and that is a lost lease. On Linux its commands are killed with it;
what they have started themselves is not, nor is a command that gains privileges (setuid). On other
systems the commands live on, and may run beside the second delivery of their message.

A process that a command leaves behind has to close its standard error.

What the queue has to say is logged on the standard error. --timeout is for connecting and starting
alone.`

const workExample = `  xstreamq work orders --group shipping -- ./ship.sh
  xstreamq work orders --group mirror -c 1 -- curl -fsS --data-binary @- https://example.com/orders
  xstreamq work orders --group shipping --exit-when-empty -- sh -c 'jq -e .id >>ids.txt || exit 65'
  xstreamq work orders --group shipping --max 1 --json -- cat | jq .verdict`

type workOptions struct {
	group          string
	concurrency    int
	prefetch       int
	retries        int
	lostLeases     int
	visibility     span
	handlerTimeout span
	maxExtension   time.Duration
	backoff        span
	dedupe         span
	fromNow        bool
	drain          time.Duration
	killAfter      time.Duration
	max            int
	exitWhenEmpty  bool
	consumer       string
}

func newWork(a *app) *cobra.Command {
	o := workOptions{visibility: span(30 * time.Second), backoff: span(time.Second)}
	cmd := &cobra.Command{
		Use:     "work QUEUE --group GROUP [flags] -- COMMAND [ARG...]",
		Short:   "Run a command for each message of a group",
		Long:    workHelp,
		Example: workExample,
		Args:    workArguments,
		ValidArgsFunction: func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
			if cmd.ArgsLenAtDash() >= 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.completeQueues(cmd, args, start)
		},
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return usageError{err}
			}
			w, err := a.newWorker(args[0], args[1:], o)
			if err != nil {
				return err
			}
			return w.run(cmd)
		},
	}
	o.addFlags(cmd)
	// It fails for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("group", func(cmd *cobra.Command, args []string, start string) ([]string, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp // the groups are those of a queue
		}
		return a.completeGroups(cmd, args, start)
	})
	return cmd
}

func (o *workOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.group, "group", "g", "", "group to work for; it is made if there is none (required)")
	flags.IntVarP(&o.concurrency, "concurrency", "c", 10, "commands that run at once")
	flags.IntVar(&o.max, "max", 0, "start this many commands at most, and end when they have (default: no limit)")
	flags.BoolVar(&o.exitWhenEmpty, "exit-when-empty", false, "end when nothing waits in the group: no backlog, nothing pending, to retry or in backoff (delayed messages do not count)")
	flags.IntVar(&o.retries, "retries", 5, "failures that are retried; one more makes a dead letter; 0 = none, -1 = without end")
	flags.Var(&o.backoff, "backoff", "wait before the first retry; it doubles with each failure, up to 5m")
	flags.IntVar(&o.lostLeases, "lost-leases", 5, "vanished workers that a message survives; 0 = none, -1 = without end")
	flags.Var(&o.visibility, "visibility-timeout", "length of a lease, and so how long a vanished worker's messages wait; it is renewed while the command runs")
	flags.Var(&o.handlerTimeout, "handler-timeout", "longest run of a command, which then counts as failed (default: none)")
	flags.DurationVar(&o.maxExtension, "max-extension", time.Hour, "how long a lease is renewed, after which the command is ended and counts as failed; negative = never renewed")
	flags.DurationVar(&o.drain, "drain-timeout", 25*time.Second, "time for commands to end after a signal; 0 = none")
	flags.DurationVar(&o.killAfter, "kill-after", 2*time.Second, "time from SIGTERM to SIGKILL for a command that has to end")
	flags.Var(&o.dedupe, "dedupe", "remember so long what was handled, and skip it when it comes again (default: off)")
	flags.BoolVar(&o.fromNow, "from-now", false, "begin a new group with what is published from now on, not with what is in the queue")
	flags.IntVar(&o.prefetch, "prefetch", 0, "messages that are read ahead of the commands")
	flags.StringVar(&o.consumer, "consumer-name", "", "how this worker shows in lists (default: host name and process id)")
}

// workArguments wants the command behind a "--", so that its flags are not taken for ours.
func workArguments(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return errors.New("QUEUE is missing; usage: " + cmd.UseLine())
	case dash < 0 || len(args) == dash:
		return errors.New("the command is missing; it comes last, after --; usage: " + cmd.UseLine())
	case dash > 1:
		return errors.New("there is more than QUEUE before --; usage: " + cmd.UseLine())
	}
	return nil
}

func (o *workOptions) check(cmd *cobra.Command) error {
	switch {
	case o.group == "":
		return errors.New("--group is missing")
	case o.concurrency < 1:
		return errors.New("--concurrency must be above 0")
	case o.prefetch < 0:
		return errors.New("--prefetch is negative")
	case cmd.Flags().Changed("max") && o.max < 1:
		return errors.New("--max must be above 0; leave it out for no limit")
	case o.retries < -1 || o.lostLeases < -1:
		return errors.New("--retries and --lost-leases are -1 for no limit, 0 for none, or more")
	case o.maxExtension == 0:
		return errors.New("--max-extension is 0; negative means that no lease is renewed")
	case o.drain < 0 || o.killAfter < 0:
		return errors.New("--drain-timeout and --kill-after are not negative")
	case time.Duration(o.handlerTimeout) > time.Hour && !cmd.Flags().Changed("max-extension"):
		o.maxExtension = time.Duration(o.handlerTimeout)
	}
	return nil
}

func (o *workOptions) subscription() xstreamq.SubscribeOptions {
	s := xstreamq.SubscribeOptions{
		Concurrency:       o.concurrency,
		Prefetch:          o.prefetch,
		VisibilityTimeout: time.Duration(o.visibility),
		MaxExtension:      o.maxExtension,
		HandlerTimeout:    time.Duration(o.handlerTimeout),
		MaxRetries:        budget(o.retries),
		MaxLostLeases:     budget(o.lostLeases),
		Backoff:           xstreamq.Backoff{Initial: time.Duration(o.backoff)},
		Dedupe:            time.Duration(o.dedupe),
	}
	if o.prefetch == 0 {
		s.Prefetch = -1
	}
	if o.max > 0 {
		s.Concurrency = min(o.concurrency, o.max)
	}
	if o.fromNow {
		s.StartFrom = xstreamq.Now
	}
	return s
}

// budget is a number of retries as the engine takes it.
func budget(n int) int {
	switch n {
	case 0:
		return xstreamq.NoRetries
	case -1:
		return xstreamq.RetryForever
	}
	return n
}
