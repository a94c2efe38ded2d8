package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const dlqShowHelp = `Show all of one dead letter, by its id in the dead-letter stream, which "dlq ls" lists first.

On a terminal a body that is JSON is indented. In a pipe each field is a line of its name, a tab and
its value. What is not printable is escaped. --raw writes the bytes of the body and nothing else,
not even a line end; on a terminal it escapes them too.

Nothing is changed.`

const dlqShowExample = `  xstreamq dlq show orders shipping 1735689600000-0
  xstreamq dlq show orders shipping 1735689600000-0 --raw > body.json
  xstreamq dlq show orders shipping 1735689600000-0 --json | jq .header`

func newDLQShow(a *app) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:               "show QUEUE GROUP ID",
		Short:             "Show all of one dead letter",
		Long:              dlqShowHelp,
		Example:           dlqShowExample,
		Args:              cobra.MatchAll(arguments(3, "QUEUE", "GROUP", "ID"), checkIDs),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			if raw && a.json {
				return usageError{errors.New("--raw and --json do not go together")}
			}
			return a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				d, err := client.DeadLetterByID(ctx, args[0], args[1], args[2])
				if err != nil {
					return err
				}
				switch {
				case raw:
					return a.writeRaw(&d)
				case a.json:
					return a.print(newDeadRow(&d))
				}
				return a.showDead(&d)
			})
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "write the bytes of the body alone")
	return cmd
}

func (a *app) writeRaw(d *xstreamq.DeadMessage) error {
	if d.Body == nil {
		return fmt.Errorf("dead letter %s has no body: %s", d.ID, printable(string(d.Reason)))
	}
	if isTerminal(a.out) {
		_, err := io.WriteString(a.out, printable(string(d.Body))+"\n")
		return err
	}
	_, err := a.out.Write(d.Body)
	return err
}

// field is a name and its value.
type field struct{ name, value string }

// fieldsOf are those that fit on a line.
func fieldsOf(d *xstreamq.DeadMessage) []field {
	died := absent
	if at := stamp(d.At); at != nil {
		died = fmt.Sprintf("%s (%s ago)", *at, ago(d.At))
	}
	fields := []field{
		{"id", d.ID},
		{"original id", or(d.OriginalID)},
		{"queue", d.Queue},
		{"group", d.Group},
		{"reason", or(string(d.Reason))},
		{"attempts", fmt.Sprintf("%d (failures %d, lost leases %d)", d.Attempts(), d.Failures, d.LostLeases)},
		{"died", died},
		{"left entry", or(d.From)},
		{"held by", or(d.By)},
	}
	for _, name := range slices.Sorted(maps.Keys(d.Header)) {
		fields = append(fields, field{"header " + name, d.Header[name]})
	}
	return fields
}

func (a *app) showDead(d *xstreamq.DeadMessage) error {
	var page bytes.Buffer
	if isTerminal(a.out) {
		table := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
		for _, f := range fieldsOf(d) {
			fmt.Fprintf(table, "%s\t%s\n", printable(f.name), printable(f.value))
		}
		table.Flush()
		writeText(&page, "error", d.Error, d.Error != "")
		writeText(&page, fmt.Sprintf("body, %d bytes", len(d.Body)), indented(d.Body), d.Body != nil)
	} else {
		for _, f := range append(fieldsOf(d), field{"error", or(d.Error)}, field{"body", or(string(d.Body))}) {
			fmt.Fprintf(&page, "%s\t%s\n", printable(f.name), printable(f.value))
		}
	}
	_, err := a.out.Write(page.Bytes())
	return err
}

// writeText writes a text of several lines, set in so that it cannot pass for another field.
func writeText(page *bytes.Buffer, title, text string, there bool) {
	if !there {
		fmt.Fprintf(page, "\n%s: none\n", strings.Split(title, ",")[0])
		return
	}
	fmt.Fprintf(page, "\n%s:\n", title)
	for line := range strings.Lines(text) {
		if line = printable(strings.TrimSuffix(line, "\n")); line != "" {
			line = "  " + line
		}
		page.WriteString(line + "\n")
	}
}

// indented is a body for people to read. What is no JSON stays as it is.
func indented(body []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, body, "", "  ") != nil {
		return string(body)
	}
	return b.String()
}
