package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const dlqLsHelp = `List the dead letters of a group, oldest first: all of them, or those that every filter given
chooses.

ATTEMPTS is how often the message was delivered, AGE how long ago it died by the clock of this
machine. Of errors and bodies a terminal shows the beginning alone; a pipe gets the whole of them on
one line, escaped where they are not printable. With --json each line is all of one dead letter,
exactly.

Nothing is changed. The list is read in pages and printed as it comes, whole unless --limit says
otherwise, and ends with what was there when it began. It ends by --timeout alone, however long the
list is.`

const dlqLsExample = `  xstreamq dlq ls orders shipping
  xstreamq dlq ls orders shipping --reason failed --newer-than 1h --body
  xstreamq dlq ls orders shipping --json-path '$.customer.id=42' --json | jq -r .original_id
  xstreamq dlq ls orders email --error timeout | cut -f1 | xargs xstreamq dlq redrive orders email`

// What a terminal shows of an error and of a body in a table, in bytes.
const (
	errorShown = 80
	bodyShown  = 60
)

type dlqLsOptions struct {
	filter filterFlags
	limit  int
	body   bool
	empty  emptiness
}

func newDLQLs(a *app) *cobra.Command {
	var o dlqLsOptions
	cmd := &cobra.Command{
		Use:               "ls QUEUE GROUP",
		Short:             "List dead letters",
		Long:              dlqLsHelp,
		Example:           dlqLsExample,
		Args:              arguments(2, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			filter, err := o.filter.filter(cmd)
			if err != nil {
				return err
			}
			if err := checkLimit(cmd, o.limit); err != nil {
				return err
			}
			return a.work(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				return a.listDead(ctx, client, args[0], args[1], filter, o)
			})
		},
	}
	o.filter.addFlags(cmd)
	addLimit(cmd.Flags(), &o.limit)
	cmd.Flags().BoolVar(&o.body, "body", false, "show bodies too (--json always does)")
	o.empty.addFlag(cmd.Flags())
	return cmd
}

func (a *app) listDead(ctx context.Context, client *xstreamq.Client, queue, group string, filter xstreamq.DeadFilter, o dlqLsOptions) error {
	header := []string{"id", "original id", "reason", "attempts", "age", "error"}
	if o.body {
		header = append(header, "body")
	}
	rows := 0
	out := a.newList(header...)
	defer out.close()
	for d, err := range client.DeadLetters(ctx, queue, group, filter) {
		if err != nil {
			return filterError(err)
		}
		cells := []string{d.ID, or(d.OriginalID), or(string(d.Reason)), strconv.Itoa(d.Attempts()), ago(d.At), or(a.cell(d.Error, errorShown))}
		if o.body {
			cells = append(cells, or(a.cell(string(d.Body), bodyShown)))
		}
		if err := out.add(newDeadRow(&d), cells...); err != nil {
			return err
		}
		if rows++; rows == o.limit {
			break
		}
	}
	if err := out.close(); err != nil {
		return err
	}
	return o.empty.end(a, rows, "no such dead letter is there")
}

// cell is a text in a table: on a terminal the beginning of its first line.
func (a *app) cell(text string, most int) string {
	if !isTerminal(a.out) {
		return text
	}
	return preview(firstLine(text), most)
}
