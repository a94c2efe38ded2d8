package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/internal/rediserr"
	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqHelp = `Work with the queues of RSMQ, the message queue that the Node package of that name made known,
beside Node processes: the commands of rsmq-cli with their aliases, and more. They share no keys
with the other commands, and --prefix does not matter to them.

Where Redis is: --url, else --url-file, else the environment variable RSMQ_URL, else XSTREAMQ_URL,
else redis://localhost:6379. There is no configuration file. --ns is the namespace.

Times are whole seconds. Numbers are read as the Node package reads them: "15abc" and "15.9" are 15.
What is no number is out of range, which is an error of RSMQ. Those are printed as "error: name:
message", such as "error: queueNotFound: Queue not found".

Standard output is what rsmq-cli prints, with its last line ended; with --json it is one JSON object
per line. Unlike with rsmq-cli the exit code is honest: 0 done; 1 it failed, or a message was not
there; 2 the command line is wrong and nothing was done; 4 there is no message, and --exit-empty was
given.`

const rsmqExample = `  xstreamq rsmq create -q orders
  xstreamq rsmq send -q orders '{"id": 1}' '{"id": 2}'
  xstreamq rsmq receive -q orders
  xstreamq rsmq stats -q orders
  xstreamq rsmq serve
  xstreamq rsmq migrate orders --to orders`

const rsmqURLVariable = "RSMQ_URL"

// rsmqOptions are the flags that the commands of RSMQ share.
type rsmqOptions struct {
	app       *app
	namespace string
	queue     string
}

func newRSMQ(a *app) *cobra.Command {
	o := &rsmqOptions{app: a}
	cmd := &cobra.Command{
		Use:     "rsmq",
		Short:   "Work with the queues of RSMQ, beside Node processes",
		Long:    rsmqHelp,
		Example: rsmqExample,
	}
	flags := cmd.PersistentFlags()
	flags.StringVarP(&o.namespace, "ns", "n", "rsmq", "the namespace: what the keys of the queues begin with")
	flags.StringVarP(&o.queue, "qname", "q", "", "the `QUEUE`")
	_ = cmd.RegisterFlagCompletionFunc("qname", o.completeQueues) // the flag was defined just above
	cmd.AddCommand(
		newRSMQCreate(o), newRSMQSend(o), newRSMQReceive(o), newRSMQPop(o), newRSMQDelete(o), newRSMQVisibility(o),
		newRSMQList(o), newRSMQCount(o), newRSMQStats(o), newRSMQAttributes(o), newRSMQPurge(o), newRSMQDeleteQueue(o),
		newRSMQServe(o), newRSMQMigrate(o),
	)
	return cmd
}

// rsmqSession is a client of RSMQ, and the connection that it is on.
type rsmqSession struct {
	*rsmq.Client
	redis rueidis.Client
}

// with runs a command with a session, which ends with it. Each call of it takes 5s at most.
func (o *rsmqOptions) with(cmd *cobra.Command, config rsmq.Config, run func(context.Context, rsmqSession) error) error {
	a := o.app
	a.conn.before = rsmqURLVariable
	config.Namespace, config.NoNamespace = o.namespace, o.namespace == ""
	return a.bounded(cmd, 0, func(ctx context.Context) error {
		redis, err := a.server()
		if err != nil {
			return err
		}
		defer redis.Close()
		client, err := rsmq.New(redis, config)
		if err != nil {
			return usageError{rsmqError{err}}
		}
		if err := run(ctx, rsmqSession{client, redis}); err != nil {
			return rsmqError{err}
		}
		return nil
	})
}

// onQueue is with for a command that needs --qname.
func (o *rsmqOptions) onQueue(cmd *cobra.Command, config rsmq.Config, run func(context.Context, rsmqSession) error) error {
	if o.queue == "" {
		return usageError{errors.New("EMISSINGQNAME: missing --qname or -q argument")}
	}
	return o.with(cmd, config, run)
}

// noQueueFlag refuses --qname where it says nothing.
func (o *rsmqOptions) noQueueFlag(instead string) error {
	if o.queue != "" {
		return usageError{errors.New("--qname does not go with this command; " + instead)}
	}
	return nil
}

// rsmqError is an error of RSMQ as people know it: its name and its message.
type rsmqError struct{ err error }

func (e rsmqError) Error() string { return strings.ReplaceAll(e.err.Error(), "rsmq: ", "") }
func (e rsmqError) Unwrap() error { return e.err }

// remedy is what to do about it, where that is another thing than for the other commands.
func (e rsmqError) remedy() string {
	switch code := rediserr.Code(e.err); {
	case errors.Is(e.err, rsmq.ErrQueueNotFound):
		return "xstreamq rsmq listqueues lists the queues; mind --url and --ns"
	case code == "WRONGTYPE":
		return "another program uses a key of this queue; another --ns keeps apart"
	}
	return ""
}

// completeQueues completes the name of a queue.
func (o *rsmqOptions) completeQueues(cmd *cobra.Command, _ []string, start string) ([]string, cobra.ShellCompDirective) {
	var found []string
	o.app.conn.timeout = completeTimeout
	err := o.with(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
		names, err := s.ListQueues(ctx)
		for _, name := range names {
			if strings.HasPrefix(name, start) && printable(name) == name {
				found = append(found, name)
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
