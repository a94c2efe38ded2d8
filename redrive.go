package xstreamq

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// RedriveOptions say where dead letters go.
type RedriveOptions struct {
	// ToQueue publishes them to the queue as new messages, with new ids, for all groups. By default a dead letter goes to its own
	// group alone, by way of the retry stream, and keeps its id.
	ToQueue bool
	// Each, if set, is called with every dead letter of the result as soon as it is known what became of it, in order: why is empty
	// for one that is Redriven, else the Reason of an Unredrivable. The next call to Redis waits for it.
	Each func(id, why string)
}

// RedriveResult is what became of dead letters.
type RedriveResult struct {
	// Redriven lists the ids, in the dead-letter stream, of those that left it.
	Redriven []string
	// Unredrivable lists those that did not. Those that are there stay where they are.
	Unredrivable []Unredrivable
}

// Unredrivable is a dead letter that could not be redriven.
type Unredrivable struct {
	ID string
	// Reason is "no-body" or "body-lost" where there is nothing to give to a handler, Gone where there is no dead letter of
	// that id (any more), else what Redis said. With ToQueue it may also be that its headers were packed on the way,
	// because it has thousands of fields: only its own group can unpack them.
	Reason string
}

// Gone is the Unredrivable.Reason of an id that is not in the dead-letter stream: somebody else redrove or purged it.
const Gone = "gone"

// redrivePage bounds one call of the redrive script.
const redrivePage = 100

// Redrive gives dead letters to their group again, each in one step: it is always in one of the two places, also when this
// process dies, and two calls at once redrive it once. It comes with its original id and body, with fresh budgets and
// without its error; with Dedupe it runs even if it was handled before. RetryMaxLen does not hold it back. An id that is
// given twice is redriven once. An id that Redis cannot read is ErrInvalidMessage, and nothing is done; ErrNoQueue and
// ErrNoGroup are returned when there was nothing to do.
//
// An error in the middle comes with what was done before it. When the outcome of a call is unknown, do it again: nothing is
// doubled. Without a deadline each call to Redis, for some 100 ids, is given 5s. When ctx is cancelled, the answer to the call that
// is under way is awaited for up to a second, so that the result is whole.
func (c *Client) Redrive(ctx context.Context, queue, group string, ids []string, o RedriveOptions) (RedriveResult, error) {
	var result RedriveResult
	if err := checkNames(queue, group); err != nil {
		return result, err
	}
	ids, err := parseIDs(ids)
	if err != nil {
		return result, err
	}
	gone := 0
	err = c.redrive(ctx, keys.ForGroup(c.cfg.KeyPrefix, queue, group), ids, o.ToQueue, func(a redriveAnswer) {
		result.add(a, o.Each)
		if a.state == redriveGone {
			gone++
		}
	})
	if err == nil && gone > 0 && gone == len(ids) {
		err = c.known(ctx, queue, group)
	}
	if err != nil {
		err = opError("redrive", queue, group, err)
	}
	return result, err
}

// add notes an answer, and tells each of it, which may be nil.
func (r *RedriveResult) add(a redriveAnswer, each func(id, why string)) {
	why := a.text
	switch a.state {
	case redriveDone:
		why = ""
		r.Redriven = append(r.Redriven, a.id)
	case redriveGone:
		why = Gone
		fallthrough
	default:
		r.Unredrivable = append(r.Unredrivable, Unredrivable{a.id, why})
	}
	if each != nil {
		each(a.id, why)
	}
}

// parseIDs reads the ids of dead letters; each is returned once. One that cannot be read is ErrInvalidMessage.
func parseIDs(ids []string) ([]string, error) {
	out := make([]string, 0, len(ids))
	seen := make(map[wire.ID]bool, len(ids))
	for _, s := range ids {
		id, ok := wire.ParseID(s)
		if !ok {
			return nil, fmt.Errorf("%w: %.100q is no id of a dead letter; the form is <ms>-<sequence>", ErrInvalidMessage, s)
		}
		if !seen[id] {
			seen[id] = true
			out = append(out, id.String())
		}
	}
	return out, nil
}

// redriveAnswer is what the redrive script says of one dead letter.
type redriveAnswer struct {
	id    string
	state int64
	text  string // the id of its new entry, or why it stays
}

const (
	redriveGone int64 = iota
	redriveDone
	redriveRefused
)

// redrive moves dead letters, and tells each what became of one as soon as it is known.
func (c *Client) redrive(ctx context.Context, k keys.Set, ids []string, toQueue bool, each func(redriveAnswer)) error {
	for len(ids) > 0 {
		page := ids[:min(len(ids), redrivePage)]
		answers, err := c.redriveSome(ctx, k, page, toQueue)
		if err != nil {
			return err
		}
		for _, a := range answers {
			each(a)
		}
		ids = ids[len(answers):]
	}
	return nil
}

// redriveSome makes one call, which answers for the first of the ids at least.
func (c *Client) redriveSome(ctx context.Context, k keys.Set, ids []string, toQueue bool) ([]redriveAnswer, error) {
	reply, err := changed(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runRedrive(ctx, c.redis, k, redriveArgs{Anew: toQueue, IDs: ids}).ToArray()
	})
	if err != nil {
		return nil, err
	}
	if len(reply) == 0 || len(reply)%2 != 0 || len(reply) > 2*len(ids) {
		return nil, fmt.Errorf("unexpected reply: %d parts for %d ids", len(reply), len(ids))
	}
	answers := make([]redriveAnswer, len(reply)/2)
	r := replyReader{reply: reply}
	for i := range answers {
		answers[i] = redriveAnswer{ids[i], r.int(), r.string()}
	}
	return answers, r.err
}
