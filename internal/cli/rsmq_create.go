package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqCreateHelp = `Make a queue, and print 1. A queue of that name that exists is an error, queueExists, and stays as
it is.`

const rsmqCreateExample = `  xstreamq rsmq create -q orders
  xstreamq rsmq create -q reports --vt 600 --delay 5 --maxsize -1`

func newRSMQCreate(o *rsmqOptions) *cobra.Command {
	var vt, delay rsmqSeconds
	var size rsmqSize
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Make a queue",
		Long:    rsmqCreateHelp,
		Example: rsmqCreateExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				err := s.CreateQueue(ctx, o.queue, rsmq.QueueOptions{VisibilityTimeout: vt.d, Delay: delay.d, MaxSize: size.n})
				if err != nil {
					return err
				}
				return o.printQueueDone()
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&vt, "vt", "how long a received message is hidden, 0 to 9999999 (default 30)")
	flags.Var(&delay, "delay", "how long a sent message waits, 0 to 9999999 (default 0)")
	flags.Var(&size, "maxsize", "largest message in UTF-16 code units, 1024 to 65536, or -1 for no limit (default 65536)")
	return cmd
}

// rsmqQueueRow is the outcome for a queue, for --json.
type rsmqQueueRow struct {
	Queue  string `json:"queue"`
	Result int    `json:"result"`
}

func (o *rsmqOptions) printQueueDone() error {
	if o.app.json {
		return o.app.print(rsmqQueueRow{o.queue, 1})
	}
	_, err := fmt.Fprintln(o.app.out, 1)
	return err
}
