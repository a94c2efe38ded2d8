package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const dlqTopHelp = `Group the dead letters of a group by their reason and by what their errors have in common, the most
frequent first. Of each error the first line counts, and in it placeholders stand for what differs
from message to message: numbers, ids, hashes, addresses, times, durations, quoted strings. The
number in "status 500" or "SQLSTATE 23505" stays.

FIRST and LAST are how long ago the first and the last one died by the clock of this machine,
EXAMPLE is the id of the last one, for "dlq show". Some thousand groups are kept apart; of more, the
rarest are counted together as (other), also those that come back later.

Nothing is changed. Every dead letter is read, with its body, in pages; it ends by --timeout alone.`

const dlqTopExample = `  xstreamq dlq top orders shipping
  xstreamq dlq top orders shipping --newer-than 1h --limit 5
  xstreamq dlq top orders shipping --json | jq -r '"\(.count) \(.error)"'`

const (
	// topShown is how many groups people are shown without --limit.
	topShown = 20
	// topKept is how many groups are kept apart when there are twice as many.
	topKept = 2000
)

type dlqTopOptions struct {
	filter filterFlags
	limit  int
	empty  emptiness
}

func newDLQTop(a *app) *cobra.Command {
	var o dlqTopOptions
	cmd := &cobra.Command{
		Use:               "top QUEUE GROUP",
		Short:             "Group dead letters by error",
		Long:              dlqTopHelp,
		Example:           dlqTopExample,
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
				return a.topDead(ctx, client, &choice{queue: args[0], group: args[1], filter: filter}, o)
			})
		},
	}
	o.filter.addFlags(cmd)
	cmd.Flags().IntVar(&o.limit, "limit", 0, fmt.Sprintf("list this many groups at most (default: %d, with --json all of them)", topShown))
	o.empty.addFlag(cmd.Flags())
	return cmd
}

func (a *app) topDead(ctx context.Context, client *xstreamq.Client, c *choice, o dlqTopOptions) error {
	found, err := tallyDead(ctx, a, client, c)
	if err != nil {
		return err
	}
	groups := found.sorted()
	shown := len(groups)
	switch {
	case o.limit > 0:
		shown = min(shown, o.limit)
	case !a.json:
		shown = min(shown, topShown)
	}
	out := a.newList("count", "reason", "first", "last", "example", "error")
	defer out.close()
	for _, g := range groups[:shown] {
		row := topRow{
			Error: g.text, Count: g.count, FirstSeen: stamp(g.first), LastSeen: stamp(g.last), ExampleID: g.example,
		}
		row.Reason, row.ReasonBase64 = exact(g.reason)
		if err := out.add(row, strconv.Itoa(g.count), or(g.reason), ago(g.first), ago(g.last), g.example, or(g.text)); err != nil {
			return err
		}
	}
	if err := out.close(); err != nil {
		return err
	}
	if rest := len(groups) - shown; rest > 0 && !a.json && o.limit == 0 {
		fmt.Fprintf(a.err, "and %d groups more; --limit shows them\n", rest)
	}
	return o.empty.end(a, len(groups), "no such dead letter is there")
}

func tallyDead(ctx context.Context, a *app, client *xstreamq.Client, c *choice) (*tallied, error) {
	t := &tallied{groups: map[topKey]*topGroup{}}
	bar := a.newProgress("dead letters", c.total(ctx, a, client))
	defer bar.close()
	looked := 0
	for d, err := range client.DeadLetters(ctx, c.queue, c.group, c.filter) {
		if err != nil {
			return nil, filterError(err)
		}
		t.add(&d)
		looked++
		bar.set(looked)
	}
	return t, nil
}

// topRow is a group of dead letters for --json.
type topRow struct {
	Reason       *string `json:"reason"`
	ReasonBase64 []byte  `json:"reason_base64,omitempty"`
	Error        string  `json:"error"`
	Count        int     `json:"count"`
	FirstSeen    *string `json:"first_seen"`
	LastSeen     *string `json:"last_seen"`
	ExampleID    string  `json:"example_id"`
}

// topKey is what the dead letters of a group have in common.
type topKey struct{ reason, text string }

type topGroup struct {
	topKey
	count       int
	first, last time.Time
	example     string // id of the last one
}

// tallied counts dead letters by reason and error.
type tallied struct {
	groups map[topKey]*topGroup
	other  topGroup // those of the groups that were too rare to keep
	text   string   // of the last error, which is often that of the next one
	normal string
}

func (t *tallied) add(d *xstreamq.DeadMessage) {
	if t.text != d.Error {
		t.text, t.normal = d.Error, normalize(d.Error)
	}
	key := topKey{string(d.Reason), t.normal}
	g := t.groups[key]
	if g == nil {
		if len(t.groups) >= 2*topKept {
			t.prune()
		}
		g = &topGroup{topKey: key}
		t.groups[key] = g
	}
	g.merge(&topGroup{count: 1, first: d.At, last: d.At, example: d.ID})
}

// merge adds the dead letters of another group.
func (g *topGroup) merge(other *topGroup) {
	if g.count == 0 || other.first.Before(g.first) {
		g.first = other.first
	}
	if g.count == 0 || !other.last.Before(g.last) {
		g.last, g.example = other.last, other.example
	}
	g.count += other.count
}

// prune keeps the most frequent groups.
func (t *tallied) prune() {
	groups := t.byCount()
	for _, g := range groups[topKept:] {
		t.other.merge(g)
		delete(t.groups, g.topKey)
	}
}

func (t *tallied) byCount() []*topGroup {
	groups := make([]*topGroup, 0, len(t.groups))
	for _, g := range t.groups {
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *topGroup) int {
		return cmp.Or(cmp.Compare(b.count, a.count), b.last.Compare(a.last), cmp.Compare(a.reason, b.reason), cmp.Compare(a.text, b.text))
	})
	return groups
}

// sorted are all groups, the most frequent first, and what was too rare at the end.
func (t *tallied) sorted() []*topGroup {
	groups := t.byCount()
	if t.other.count > 0 {
		t.other.text = "(other)"
		groups = append(groups, &t.other)
	}
	return groups
}
