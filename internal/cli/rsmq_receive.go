package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqReceiveHelp = `Receive the next message and print it as one line of JSON: id, message, rc (how often it was
received, this time included), fr and sent (when it was first received and when it was sent, in ms).
It prints {} when there is none.

The message is then hidden for the visibility timeout, and comes again unless it is deleted. A
message that another program stored and that is no UTF-8 is null, and message_base64 holds its
bytes.`

const rsmqReceiveExample = `  xstreamq rsmq receive -q orders
  xstreamq rsmq rc -q orders --vt 600
  xstreamq rsmq receive -q orders --exit-empty | jq -r .message`

func newRSMQReceive(o *rsmqOptions) *cobra.Command {
	var vt rsmqSeconds
	var empty bool
	cmd := &cobra.Command{
		Use:     "receive",
		Aliases: []string{"rc"},
		Short:   "Receive a message and hide it",
		Long:    rsmqReceiveHelp,
		Example: rsmqReceiveExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				m, ok, err := s.ReceiveMessage(ctx, o.queue, rsmq.ReceiveOptions{VisibilityTimeout: vt.d})
				return o.printMessage(m, ok, err, empty)
			})
		},
	}
	cmd.Flags().Var(&vt, "vt", "how long the message is hidden, 0 to 9999999 (default: as the queue says)")
	addRSMQEmpty(cmd.Flags(), &empty)
	return cmd
}

const rsmqPopHelp = `Receive the next message, delete it in the same step, and print it as receive does. It prints {}
when there is none. A message that was popped does not come again, also when its output is lost.`

const rsmqPopExample = `  xstreamq rsmq pop -q orders
  xstreamq rsmq pop -q orders --exit-empty | jq -r .message`

func newRSMQPop(o *rsmqOptions) *cobra.Command {
	var empty bool
	cmd := &cobra.Command{
		Use:     "pop",
		Short:   "Receive a message and delete it",
		Long:    rsmqPopHelp,
		Example: rsmqPopExample,
		Args:    arguments(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.onQueue(cmd, rsmq.Config{}, func(ctx context.Context, s rsmqSession) error {
				m, ok, err := s.PopMessage(ctx, o.queue)
				return o.printMessage(m, ok, err, empty)
			})
		},
	}
	addRSMQEmpty(cmd.Flags(), &empty)
	return cmd
}

func addRSMQEmpty(flags *pflag.FlagSet, empty *bool) {
	flags.BoolVar(empty, "exit-empty", false, "exit with 4 when there is no message")
}

// rsmqMessage is a message as the Node package returns it, exact also where it is not UTF-8.
type rsmqMessage struct {
	ID            string       `json:"id"`
	Message       *string      `json:"message"`
	MessageBase64 []byte       `json:"message_base64,omitempty"`
	Received      int64        `json:"rc"`
	FirstReceived int64        `json:"fr"`
	Sent          *json.Number `json:"sent"`
}

// printMessage prints what was received, if anything.
func (o *rsmqOptions) printMessage(m rsmq.Message, ok bool, err error, exitEmpty bool) error {
	if err != nil {
		return err
	}
	if !ok {
		if err := o.app.print(struct{}{}); err != nil || !exitEmpty {
			return err
		}
		return errEmpty
	}
	body := m.Body
	m.Body = ""
	plain, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode the message %s: %w", m.ID, err)
	}
	var out rsmqMessage
	if err := json.Unmarshal(plain, &out); err != nil {
		return fmt.Errorf("encode the message %s: %w", m.ID, err)
	}
	if !m.NoBody {
		out.Message, out.MessageBase64 = exact(body)
	}
	return o.app.print(out)
}
