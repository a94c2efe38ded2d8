package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const dlqHelp = `Look at dead letters, and decide what becomes of them. A dead letter is a message that used up a
budget of its group or can never be handled; nothing but a redrive or a purge ever takes it away.

A way to work through many: "dlq top" shows what went wrong how often, "dlq ls" and "dlq show" what
is behind it. When the cause is gone, "dlq redrive --canary 10" tries ten of them before it gives
the rest to the group again. "dlq purge" deletes what nobody needs.`

func newDLQ(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look at dead letters, redrive and purge them",
		Long:  dlqHelp,
		Example: `  xstreamq dlq top orders shipping
  xstreamq dlq ls orders shipping --reason failed --older-than 1h
  xstreamq dlq redrive orders shipping --error "connection refused" --canary 10`,
	}
	cmd.AddCommand(newDLQLs(a), newDLQShow(a), newDLQRedrive(a), newDLQPurge(a), newDLQTop(a))
	return cmd
}

// deadRow is a dead letter for --json.
type deadRow struct {
	Queue            string  `json:"queue"`
	Group            string  `json:"group"`
	ID               string  `json:"id"`
	OriginalID       *string `json:"original_id"`
	OriginalIDBase64 []byte  `json:"original_id_base64,omitempty"`
	Reason           *string `json:"reason"`
	ReasonBase64     []byte  `json:"reason_base64,omitempty"`
	Attempts         int     `json:"attempts"`
	Failures         int     `json:"failures"`
	LostLeases       int     `json:"lost_leases"`
	At               *string `json:"at"`
	From             *string `json:"from"`
	FromBase64       []byte  `json:"from_base64,omitempty"`
	By               *string `json:"by"`
	ByBase64         []byte  `json:"by_base64,omitempty"`
	payload
}

func newDeadRow(d *xstreamq.DeadMessage) deadRow {
	row := deadRow{
		Queue: d.Queue, Group: d.Group, ID: d.ID,
		Attempts: d.Attempts(), Failures: d.Failures, LostLeases: d.LostLeases, At: stamp(d.At),
		payload: newPayload(d.Body, d.Header, d.Error),
	}
	row.OriginalID, row.OriginalIDBase64 = exact(d.OriginalID)
	row.Reason, row.ReasonBase64 = exact(string(d.Reason))
	row.From, row.FromBase64 = exact(d.From)
	row.By, row.ByBase64 = exact(d.By)
	return row
}

// deadLetters is a number of them for people.
func deadLetters(n int) string {
	if n == 1 {
		return "1 dead letter"
	}
	return fmt.Sprintf("%d dead letters", n)
}

// stopped says that a command ended early, where it did something before or was told to end, and returns its error.
func (a *app) stopped(how string, done int, err error) error {
	if done > 0 && !errors.Is(err, xstreamq.ErrCanary) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(a.err, "stopped: %s %s so far; run it again to go on\n", deadLetters(done), how)
	}
	return filterError(err)
}

// byReason is how many dead letters there are of each reason, the most frequent first.
func byReason(counts map[xstreamq.Reason]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b xstreamq.Reason) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(names))
	for i, r := range names {
		parts[i] = fmt.Sprintf("%s %d", printable(or(string(r))), counts[r])
	}
	return strings.Join(parts, ", ")
}
