package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const publishHelp = `Publish one message, or one for each line of the standard input.

The body is BODY, or with --file all of a file ("-" is the standard input). With neither, every line
of the standard input is a message: "\n" or "\r\n" ends a line and is not part of the body, empty
lines are skipped and counted, the last line need not be ended. A body may hold any other bytes. A
line longer than --max-body ends the command.

The ids are printed in the order of the lines, as soon as Redis has the messages; with --json each
with the number of its line. Lines that come slowly are published as they come, so that "tail -f"
can be piped into it.

It stops at the first error, with exit code 1, and says how many messages were stored and which line
is the first that was not, or that may have been stored or not: when a connection breaks, nobody
knows what became of the messages on their way. Lines travel in batches of up to 500, so some after
that line may have been stored all the same; their ids are printed. An interrupt (Ctrl-C) lets the
batch on its way end, and says the same.

--header, --delay and --at hold for every message. A delayed message needs a running worker of the
queue to become due. --at in the past means at once.`

const publishExample = `  xstreamq publish orders '{"id":1}'
  xstreamq publish orders '{"id":2}' --delay 10m -H tenant=acme
  xstreamq publish images --file photo.jpg --max-body 10000000
  zcat events.jsonl.gz | xstreamq publish events >ids.txt
  tail -n +501 events.jsonl | xstreamq publish events   # go on where an error stopped it`

// largestBody is what Redis takes in one string, unless its proto-max-bulk-len says otherwise.
const largestBody = 512 << 20

type publishOptions struct {
	file    string
	headers []string
	delay   span
	at      string
	maxBody int
}

func newPublish(a *app) *cobra.Command {
	var o publishOptions
	cmd := &cobra.Command{
		Use:               "publish QUEUE [BODY]",
		Short:             "Publish messages",
		Long:              publishHelp,
		Example:           publishExample,
		Args:              arguments(1, "QUEUE", "BODY"),
		ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.publish(cmd, args, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", `file whose content is the body; "-" is the standard input`)
	flags.StringArrayVarP(&o.headers, "header", "H", nil, "header, as NAME=VALUE; may be repeated")
	flags.Var(&o.delay, "delay", "deliver so long after Redis stored it, as 90s, 15m, 12h or 7d")
	flags.StringVar(&o.at, "at", "", "deliver at this time, as 2006-01-02T15:04:05Z or with an offset like +02:00 (RFC 3339)")
	flags.IntVar(&o.maxBody, "max-body", 1<<20, "largest body, in bytes; at most 536870912, which is 512 MiB")
	return cmd
}

func (a *app) publish(cmd *cobra.Command, args []string, o publishOptions) error {
	options, err := o.message()
	if err != nil {
		return usageError{err}
	}
	oneBody, err := a.bodySource(cmd, args, o)
	if err != nil {
		return err
	}
	a.config.MaxBodySize = o.maxBody
	return a.bounded(cmd, 0, func(ctx context.Context) error {
		var body []byte
		if oneBody != nil {
			if body, err = oneBody(ctx); err != nil {
				return err
			}
		}
		client, err := a.open()
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		queue, err := xstreamq.NewQueue(client, args[0], xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
		if err != nil {
			return usageError{err}
		}
		if oneBody != nil {
			return a.publishOne(ctx, queue, body, options)
		}
		return a.publishLines(ctx, queue, options, o.maxBody)
	})
}

// message checks what is the same for every message, and returns it as options.
func (o *publishOptions) message() ([]xstreamq.PublishOption, error) {
	var options []xstreamq.PublishOption
	seen := map[string]bool{}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("--header %q is not NAME=VALUE", h)
		}
		if seen[name] {
			return nil, fmt.Errorf("--header %q is given twice", name)
		}
		seen[name] = true
		options = append(options, xstreamq.WithHeader(name, value))
	}
	if o.delay > 0 && o.at != "" {
		return nil, errors.New("--delay and --at are both given")
	}
	if o.delay > 0 {
		options = append(options, xstreamq.WithDelay(time.Duration(o.delay)))
	}
	if o.at != "" {
		at, err := time.Parse(time.RFC3339, o.at)
		if err != nil {
			return nil, fmt.Errorf("--at %q is not a time like 2006-01-02T15:04:05Z", o.at)
		}
		options = append(options, xstreamq.WithDeliverAt(at))
	}
	if o.maxBody < 1 {
		return nil, errors.New("--max-body must be above 0")
	}
	if o.maxBody > largestBody {
		return nil, fmt.Errorf("--max-body is above %d, the 512 MiB that Redis takes", largestBody)
	}
	return options, nil
}

func (a *app) publishOne(ctx context.Context, queue *xstreamq.Queue[[]byte], body []byte, options []xstreamq.PublishOption) error {
	id, err := queue.Publish(ctx, body, options...)
	if err != nil {
		return cutOff(ctx, err)
	}
	ids := a.newIDPrinter()
	ids.add(id, 0)
	if err := ids.flush(); err != nil {
		return fmt.Errorf("the message is stored as %s, but that cannot be printed: %w", id, err)
	}
	return nil
}

func (a *app) publishLines(ctx context.Context, queue *xstreamq.Queue[[]byte], options []xstreamq.PublishOption, longest int) error {
	lines, reader := newGathered(), newLineReader(a.in, longest)
	go reader.gather(lines)
	sender := &lineSender{queue: queue, options: options, ids: a.newIDPrinter()}
	bar := a.newProgress("messages", 0)
	err := sender.sendAll(ctx, lines, bar.set)
	bar.close()
	switch {
	case err != nil:
		return err
	case reader.skipped > 0:
		fmt.Fprintf(a.err, "%s, skipped %s\n", sender.soFar(), plural(reader.skipped, "empty line", "empty lines"))
	default:
		fmt.Fprintln(a.err, sender.soFar())
	}
	return nil
}
