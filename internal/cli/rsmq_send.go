package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/rsmq"
)

const rsmqSendHelp = `Send messages, and print their ids, one per line, in the order of the messages.

Without a message, or with "-" alone, every line of the standard input is one: "\n" or "\r\n" ends a
line and is not part of the message, and empty lines are skipped. Lines that come slowly are sent as
they come.

Several messages travel in pages of up to 100 or 1 MiB, each of which is stored whole or not at all.
It stops at the first error with exit code 1, after the ids of what was stored, and says how many
that are; "outcome unknown" says that the page after these may have been stored.`

const rsmqSendExample = `  xstreamq rsmq send -q orders '{"id": 1}' '{"id": 2}'
  xstreamq rsmq send -q orders --delay 60 later
  xstreamq rsmq sn -q orders -- --a-message-with-dashes
  tail -f events.jsonl | xstreamq rsmq send -q events`

// rsmqLongestLine is the most that Redis takes as one value.
const rsmqLongestLine = 512 << 20

func newRSMQSend(o *rsmqOptions) *cobra.Command {
	var delay rsmqSeconds
	var realtime bool
	cmd := &cobra.Command{
		Use:     "send [MESSAGE...]",
		Aliases: []string{"sn"},
		Short:   "Send messages",
		Long:    rsmqSendHelp,
		Example: rsmqSendExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			lines := len(args) == 0 || len(args) == 1 && args[0] == "-"
			if len(args) == 0 && isTerminal(o.app.in) {
				return usageError{errors.New("MESSAGE is missing: give messages as arguments, or pipe them in, one per line")}
			}
			return o.onQueue(cmd, rsmq.Config{Realtime: realtime}, func(ctx context.Context, s rsmqSession) error {
				sender := rsmqSender{rsmqOptions: o, session: s, options: rsmq.SendOptions{Delay: delay.d}}
				if lines {
					return sender.sendLines(ctx)
				}
				return sender.stopped(sender.send(ctx, args))
			})
		},
	}
	flags := cmd.Flags()
	flags.Var(&delay, "delay", "how long the messages wait, 0 to 9999999 (default: as the queue says)")
	flags.BoolVar(&realtime, "realtime", false, "also publish the number of messages, as the Node package does with its option realtime")
	return cmd
}

// rsmqSender sends to one queue.
type rsmqSender struct {
	*rsmqOptions
	session rsmqSession
	options rsmq.SendOptions
	sent    int
}

// rsmqIDRow is one message that was sent, for --json.
type rsmqIDRow struct {
	ID string `json:"id"`
}

// send sends messages and prints the ids of those that were stored.
func (s *rsmqSender) send(ctx context.Context, bodies []string) error {
	ids, err := s.session.SendMessages(ctx, s.queue, bodies, s.options)
	for _, id := range ids {
		if printErr := s.printID(id); printErr != nil {
			return fmt.Errorf("%d messages were stored, whose ids cannot be printed: %w", s.sent+len(ids), printErr)
		}
	}
	s.sent += len(ids)
	return err
}

func (s *rsmqSender) printID(id string) error {
	if s.app.json {
		return s.app.print(rsmqIDRow{id})
	}
	_, err := fmt.Fprintln(s.app.out, id)
	return err
}

// stopped says how many messages were stored before an error.
func (s *rsmqSender) stopped(err error) error {
	if err != nil && s.sent > 0 {
		fmt.Fprintf(s.app.err, "stopped: %s stored so far\n", plural(s.sent, "message", "messages"))
	}
	return err
}

// sendLines sends each line of the input.
func (s *rsmqSender) sendLines(ctx context.Context) error {
	lines, reader := newGathered(), newLineReader(s.app.in, rsmqLongestLine)
	defer context.AfterFunc(ctx, func() { lines.abandon(ctx.Err()) })()
	go reader.gather(lines)
	for {
		taken, err := lines.take()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return s.stopped(err)
		}
		bodies := make([]string, len(taken))
		for i, l := range taken {
			bodies[i] = string(l.body)
		}
		if err := s.send(ctx, bodies); err != nil {
			lines.abandon(err)
			return s.stopped(err)
		}
	}
}
