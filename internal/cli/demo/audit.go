package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// audit accounts for every message of every group, from what Redis holds and what the handlers noted. It does not ask the
// library.
func (r *run) audit(ctx context.Context) (*Report, error) {
	report := &Report{}
	for _, g := range groups {
		left, err := readRemains(ctx, r.redis, r.prefix, g.name)
		if err != nil {
			return nil, fmt.Errorf("read what Redis holds of group %s: %w", g.name, err)
		}
		done := r.tally.of(g.name)
		report.Problems = append(report.Problems, account(g, r.ledger.events, done, left)...)
		report.Groups = append(report.Groups, GroupReport{
			Group: g.name, Published: len(r.ledger.events), Handled: len(done.handled), Retried: done.retried,
			Recovered: done.recovered, Dead: left.byReason(), Released: done.released,
		})
	}
	report.Accounted = len(report.Problems) == 0
	return report, nil
}

// account checks one group: each published message must have met its fate, exactly once where it is a dead letter, and nothing
// may be left over. It returns what is wrong.
func account(g group, published map[string]string, done counts, left remains) []string {
	problems := left.unfinished()
	for _, id := range slices.Sorted(maps.Keys(published)) {
		event := published[id]
		want, reasons := g.fate(event), left.dead[id]
		_, handled := done.handled[id]
		switch {
		case !handled && len(reasons) == 0:
			problems = append(problems, fmt.Sprintf("%s (%s) is lost: neither handled nor a dead letter", id, event))
		case handled && len(reasons) > 0:
			problems = append(problems, fmt.Sprintf("%s (%s) was handled and is a dead letter too", id, event))
		case len(reasons) > 1:
			problems = append(problems, fmt.Sprintf("%s (%s) is %d dead letters", id, event, len(reasons)))
		case handled && want != "":
			problems = append(problems, fmt.Sprintf("%s (%s) was handled; it should be a dead letter, %s", id, event, want))
		case !handled && reasons[0] != want:
			problems = append(problems, fmt.Sprintf("%s (%s) is a dead letter, %s; it should be: %s", id, event, reasons[0], orHandled(want)))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left.dead)) {
		if _, ok := published[id]; !ok {
			problems = append(problems, fmt.Sprintf("dead letter %s was never published", id))
		}
	}
	for i := range problems {
		problems[i] = g.name + ": " + problems[i]
	}
	return problems
}

func orHandled(r xstreamq.Reason) string {
	if r == "" {
		return "handled"
	}
	return string(r)
}

// remains is what Redis holds of one group.
type remains struct {
	undelivered bool  // the queue has entries that the group was never given
	pending     int64 // held by a worker, of the queue or of the retry stream
	retrying    int64 // in the retry stream
	waiting     int64 // for the end of their backoff
	delayed     int64 // delayed publishes that are not due
	dead        map[string][]xstreamq.Reason
}

func (l remains) unfinished() []string {
	var problems []string
	if l.undelivered {
		problems = append(problems, "the queue holds messages that were not delivered")
	}
	for _, place := range []struct {
		n    int64
		what string
	}{
		{l.pending, "are pending"},
		{l.retrying, "are in the retry stream"},
		{l.waiting, "wait for their backoff"},
		{l.delayed, "are delayed"},
	} {
		if place.n > 0 {
			problems = append(problems, fmt.Sprintf("%d messages %s", place.n, place.what))
		}
	}
	return problems
}

func (l remains) byReason() map[xstreamq.Reason]int {
	n := map[xstreamq.Reason]int{}
	for _, reasons := range l.dead {
		for _, reason := range reasons {
			n[reason]++
		}
	}
	return n
}

// readRemains reads the keys of a group with plain commands.
func readRemains(ctx context.Context, rc rueidis.Client, prefix, group string) (remains, error) {
	k := keys.ForGroup(prefix, queueName, group)
	var l remains
	var err error
	if l.undelivered, err = undelivered(ctx, rc, k.Queue, group); err != nil {
		return l, err
	}
	for stream, consumers := range map[string]string{k.Queue: group, k.Retry: keys.RetryGroup(group)} {
		n, err := pending(ctx, rc, stream, consumers)
		if err != nil {
			return l, err
		}
		l.pending += n
	}
	count := func(cmd rueidis.Completed) (n int64) {
		if err == nil {
			n, err = rc.Do(ctx, cmd).AsInt64()
		}
		return n
	}
	l.retrying = count(rc.B().Xlen().Key(k.Retry).Build())
	l.waiting = count(rc.B().Zcard().Key(k.Backoff).Build())
	l.delayed = count(rc.B().Zcard().Key(k.Delayed).Build())
	if err != nil {
		return l, err
	}
	l.dead, err = deadReasons(ctx, rc, k.DLQ)
	return l, err
}

// pending counts the entries of a stream that consumers of a group hold.
func pending(ctx context.Context, rc rueidis.Client, stream, group string) (int64, error) {
	summary, err := rc.Do(ctx, rc.B().Xpending().Key(stream).Group(group).Build()).ToArray()
	if err == nil && len(summary) == 0 {
		err = errors.New("the reply is empty")
	}
	if err != nil {
		return 0, fmt.Errorf("XPENDING of %s: %w", stream, err)
	}
	return summary[0].AsInt64()
}

// undelivered reports whether the newest entry of the queue is newer than the last one that the group was given.
func undelivered(ctx context.Context, rc rueidis.Client, queue, group string) (bool, error) {
	newest, err := rc.Do(ctx, rc.B().Xrevrange().Key(queue).End("+").Start("-").Count(1).Build()).AsXRange()
	if err != nil || len(newest) == 0 {
		return false, err
	}
	infos, err := rc.Do(ctx, rc.B().XinfoGroups().Key(queue).Build()).ToArray()
	if err != nil {
		return false, err
	}
	for i := range infos {
		info, err := infos[i].AsStrMap()
		if err != nil {
			return false, err
		}
		if info["name"] != group {
			continue
		}
		given, ok := wire.ParseID(withSequence(info["last-delivered-id"]))
		last, valid := wire.ParseID(newest[0].ID)
		if !ok || !valid {
			return false, fmt.Errorf("unexpected ids %q and %q", info["last-delivered-id"], newest[0].ID)
		}
		return given.Less(last), nil
	}
	return false, fmt.Errorf("group %s is missing from %s", group, queue)
}

// withSequence completes an id: the embedded server gives back the 0 that a group was created with.
func withSequence(id string) string {
	if !strings.Contains(id, "-") {
		return id + "-0"
	}
	return id
}

// deadReasons returns, by original id, the reason of each dead letter.
func deadReasons(ctx context.Context, rc rueidis.Client, dlq string) (map[string][]xstreamq.Reason, error) {
	letters, err := rc.Do(ctx, rc.B().Xrange().Key(dlq).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		return nil, fmt.Errorf("XRANGE of %s: %w", dlq, err)
	}
	dead := make(map[string][]xstreamq.Reason, len(letters))
	for _, letter := range letters {
		id := letter.FieldValues[wire.Original]
		dead[id] = append(dead[id], xstreamq.Reason(letter.FieldValues[wire.Reason]))
	}
	return dead, nil
}
