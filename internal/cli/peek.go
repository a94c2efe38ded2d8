package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const peekHelp = `Look at messages where they lie, without consuming them.

Without GROUP it shows the first entries of the queue, with GROUP the next ones that the group has
not been given yet. --from looks elsewhere: retry (redeliveries that wait for a worker or are with
one), delayed (publishes that are not due, next first), backoff (failed messages that wait for their
next try, next first) and dlq (dead letters, oldest first). Retry, backoff and dlq are a group's own
and need GROUP.

AGE is since the message was published, DUE is until it is delivered, both by the clock of this
machine; "-" is not known. ATTEMPTS is how often it was delivered, the deliveries that were given
back not counted. Headers and bodies are cut to their beginning; with --full they are not, and a
terminal shows each message on several lines. Bytes that are not printable are escaped. --json
prints all of each message, exactly.

Nothing is changed. Bodies are fetched in pages of some 512 KiB, but all messages that are shown are
in memory at once.`

const peekExample = `  xstreamq peek orders
  xstreamq peek orders shipping --from dlq --count 3 --full
  xstreamq peek orders --from delayed --json | jq -r .body`

// previewSize is how much of a body or of the headers is shown, in bytes.
const previewSize = 60

// places are those that peek can look at, with whether they are a group's own.
var places = map[xstreamq.Place]bool{
	xstreamq.InQueue:   false,
	xstreamq.InRetry:   true,
	xstreamq.InDelayed: false,
	xstreamq.InBackoff: true,
	xstreamq.InDLQ:     true,
}

type peekOptions struct {
	from  string
	count int
	full  bool
	empty emptiness
}

func newPeek(a *app) *cobra.Command {
	var o peekOptions
	cmd := &cobra.Command{
		Use:               "peek QUEUE [GROUP]",
		Short:             "Look at messages without consuming them",
		Long:              peekHelp,
		Example:           peekExample,
		Args:              arguments(1, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			group := argument(args, 1)
			if err := o.check(group); err != nil {
				return usageError{err}
			}
			return a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
				found, err := client.Peek(ctx, args[0], group, xstreamq.PeekOptions{From: xstreamq.Place(o.from), Count: o.count})
				if err != nil {
					return err
				}
				return a.listPeeked(found, o)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.from, "from", string(xstreamq.InQueue), "where to look: queue, retry, delayed, backoff or dlq")
	flags.IntVar(&o.count, "count", 10, "how many messages to show at most")
	flags.BoolVar(&o.full, "full", false, "show headers and bodies to their end")
	o.empty.addFlag(flags)
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(
		[]string{"queue", "retry", "delayed", "backoff", "dlq"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *peekOptions) check(group string) error {
	ofGroup, ok := places[xstreamq.Place(o.from)]
	switch {
	case !ok:
		return fmt.Errorf("--from %q is none of queue, retry, delayed, backoff and dlq", o.from)
	case ofGroup && group == "":
		return fmt.Errorf("GROUP is missing: --from %s looks at what is a group's own", o.from)
	case o.count < 1:
		return errors.New("--count must be above 0")
	}
	return nil
}

// peekRow is a message for --json.
type peekRow struct {
	Place            xstreamq.Place `json:"place"`
	ID               *string        `json:"id"`
	IDBase64         []byte         `json:"id_base64,omitempty"`
	OriginalID       *string        `json:"original_id"`
	OriginalIDBase64 []byte         `json:"original_id_base64,omitempty"`
	PublishedAt      *string        `json:"published_at"`
	Due              *string        `json:"due,omitempty"`
	Attempts         int            `json:"attempts"`
	Failures         int            `json:"failures"`
	LostLeases       int            `json:"lost_leases"`
	Reason           *string        `json:"reason,omitempty"`
	ReasonBase64     []byte         `json:"reason_base64,omitempty"`
	At               *string        `json:"at,omitempty"`
	payload
}

func newPeekRow(m *xstreamq.StoredMessage) peekRow {
	row := peekRow{
		Place: m.Place, PublishedAt: stamp(m.PublishedAt), Due: stamp(m.Due),
		Attempts: attempts(m), Failures: m.Failures, LostLeases: m.LostLeases, At: stamp(m.At),
		payload: newPayload(m.Body, m.Header, m.Error),
	}
	row.ID, row.IDBase64 = exact(m.ID)
	if m.OriginalID != "" {
		row.OriginalID, row.OriginalIDBase64 = exact(m.OriginalID)
	}
	if m.Reason != "" {
		row.Reason, row.ReasonBase64 = exact(string(m.Reason))
	}
	return row
}

func attempts(m *xstreamq.StoredMessage) int {
	d := xstreamq.DeadMessage{Failures: m.Failures, LostLeases: m.LostLeases, Reason: m.Reason}
	return d.Attempts()
}

func (a *app) listPeeked(found []xstreamq.StoredMessage, o peekOptions) error {
	if o.full && !a.json && isTerminal(a.out) {
		for i := range found {
			if err := a.showPeeked(&found[i], i > 0); err != nil {
				return err
			}
		}
		return o.empty.end(a, len(found), noMessage)
	}
	when := "age"
	if o.waits() {
		when = "due"
	}
	most := previewSize
	if o.full {
		most = 0
	}
	out := a.newList("id", "original id", when, "attempts", "headers", "body")
	defer out.close()
	for i := range found {
		m := &found[i]
		at := ago(m.PublishedAt)
		if o.waits() {
			at = until(m.Due)
		}
		err := out.add(newPeekRow(m), m.ID, or(m.OriginalID), at, strconv.Itoa(attempts(m)),
			or(preview(headers(m.Header), most)), or(preview(string(m.Body), most)))
		if err != nil {
			return err
		}
	}
	if err := out.close(); err != nil {
		return err
	}
	return o.empty.end(a, len(found), noMessage)
}

const noMessage = "no message is there"

// waits reports whether the messages of the place have a time at which they are due.
func (o *peekOptions) waits() bool {
	return o.from == string(xstreamq.InDelayed) || o.from == string(xstreamq.InBackoff)
}

// showPeeked shows all of a message on a terminal, after a line that parts it from the one before.
func (a *app) showPeeked(m *xstreamq.StoredMessage, another bool) error {
	var page bytes.Buffer
	if another {
		page.WriteString("\n")
	}
	table := tabwriter.NewWriter(&page, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(table, "%s\t%s\n", printable(name), or(printable(value))) }
	line("id", m.ID)
	line("original id", m.OriginalID)
	line("published", moment(m.PublishedAt))
	if !m.Due.IsZero() {
		line("due", moment(m.Due))
	}
	if m.Reason != "" {
		line("reason", string(m.Reason))
		line("died", moment(m.At))
	}
	line("attempts", fmt.Sprintf("%d (failures %d, lost leases %d)", attempts(m), m.Failures, m.LostLeases))
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		line("header "+name, m.Header[name])
	}
	table.Flush()
	if m.Error != "" {
		writeText(&page, "error", m.Error, true)
	}
	writeText(&page, fmt.Sprintf("body, %d bytes", len(m.Body)), indented(m.Body), m.Body != nil)
	_, err := a.out.Write(page.Bytes())
	return err
}

// moment is a time for people, and how far away it is by this machine's clock.
func moment(t time.Time) string {
	switch at := stamp(t); {
	case at == nil:
		return absent
	case t.After(time.Now()):
		return fmt.Sprintf("%s (in %s)", *at, until(t))
	default:
		return fmt.Sprintf("%s (%s ago)", *at, ago(t))
	}
}

// until is how long it is to a time, by this machine's clock.
func until(t time.Time) string {
	if t.IsZero() {
		return absent
	}
	return short(time.Until(t))
}

// headers are a message's headers on one line.
func headers(h map[string]string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(h)) {
		pairs = append(pairs, name+"="+h[name])
	}
	return strings.Join(pairs, " ")
}
