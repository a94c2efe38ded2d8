package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/xstreamq/xstreamq"
)

// survey is what a look at the chosen dead letters found, without changing anything.
type survey struct {
	xstreamq.RedriveResult // what would be done
	reasons                map[xstreamq.Reason]int
	newest                 string // id of the last one; ids are in order
}

// look surveys what is chosen, up to the limit. stays says why a dead letter would stay all the same; "" if it would not.
func (c *choice) look(ctx context.Context, a *app, client *xstreamq.Client, stays func(*xstreamq.DeadMessage) string) (survey, error) {
	s := survey{reasons: map[xstreamq.Reason]int{}}
	bar := a.newProgress("dead letters", c.total(ctx, a, client))
	defer bar.close()
	looked := 0
	for d, err := range c.each(ctx, client) {
		var why string
		switch {
		case errors.Is(err, xstreamq.ErrNoMessage):
			why = xstreamq.Gone
		case err != nil:
			return s, filterError(err)
		default:
			why = stays(d)
		}
		if why != "" {
			s.Unredrivable = append(s.Unredrivable, xstreamq.Unredrivable{ID: d.ID, Reason: why})
		} else {
			s.Redriven = append(s.Redriven, d.ID)
			s.reasons[d.Reason]++
			s.newest = d.ID
		}
		looked++
		bar.set(looked)
		if len(s.Redriven) == c.limit && c.limit > 0 {
			break
		}
	}
	return s, nil
}

// each walks the dead letters that are chosen. One that is named and not there has its id alone, and ErrNoMessage.
func (c *choice) each(ctx context.Context, client *xstreamq.Client) func(yield func(*xstreamq.DeadMessage, error) bool) {
	return func(yield func(*xstreamq.DeadMessage, error) bool) {
		for _, id := range c.ids {
			d, err := client.DeadLetterByID(ctx, c.queue, c.group, id)
			d.ID = id
			if !yield(&d, err) {
				return
			}
		}
		if len(c.ids) > 0 {
			return
		}
		for d, err := range client.DeadLetters(ctx, c.queue, c.group, c.filter) {
			if !yield(&d, err) {
				return
			}
		}
	}
}

// total is how many dead letters there are to look at; 0 = not known.
func (c *choice) total(ctx context.Context, a *app, client *xstreamq.Client) int {
	if len(c.ids) > 0 || !isTerminal(a.err) {
		return len(c.ids)
	}
	// A total that cannot be had is no reason to stop.
	depth, _ := client.Depth(ctx, c.queue, c.group)
	return int(depth.Dead)
}

// upTo narrows a filter to what the survey saw: what died since was not shown to who confirmed.
func (s *survey) upTo(filter xstreamq.DeadFilter) xstreamq.DeadFilter {
	filter.Match = func(d *xstreamq.DeadMessage) bool { return compareIDs(d.ID, s.newest) <= 0 }
	return filter
}

// compareIDs orders stream ids as Redis writes them.
func compareIDs(a, b string) int {
	aTime, aCount, _ := strings.Cut(a, "-")
	bTime, bCount, _ := strings.Cut(b, "-")
	if c := compareNumbers(aTime, bTime); c != 0 {
		return c
	}
	return compareNumbers(aCount, bCount)
}

func compareNumbers(a, b string) int {
	if d := len(a) - len(b); d != 0 {
		return d
	}
	return strings.Compare(a, b)
}
