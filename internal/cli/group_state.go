package cli

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

// groupState is what can be seen of a group at one moment.
type groupState struct {
	queue, group string
	registration *xstreamq.Registration // nil: it is not in the registry
	stream       *xstreamq.Group        // nil: it is not there
	missing      bool                   // it is registered, and not on the stream

	depth   xstreamq.Depth
	workers int // live ones
	// abandoned messages are held by consumers that are gone for longer than their lease; forsaken ones are those of them that
	// somebody should have taken over by now.
	abandoned, forsaken int64
	// oldest is the first of those that are pending on the queue, or else on the retry stream; worst the one whose lease ran out
	// longest ago, among the first pendingLooked. nil: none is pending.
	oldest, worst *pendingState
	// backoffDue and delayedDue are when the first waiting message was or is due. Zero: none waits.
	backoffDue, delayedDue time.Time
	progress               string // moving, still, or "" where it was not looked for
	deeper
	err error // what went wrong; the rest is then not filled in
}

// pendingState is a pending message with the lease of whoever holds it; 0: it has none that runs out.
type pendingState struct {
	xstreamq.PendingMessage
	lease time.Duration
}

// pendingLooked bounds how many pending messages of a group are looked at.
const pendingLooked = 1000

// overdue is how long ago the lease ran out; not above 0 if it did not.
func (p *pendingState) overdue() time.Duration {
	if p == nil || p.lease <= 0 {
		return 0
	}
	return p.Idle - p.lease
}

// look sees how a group is. The names are filled in, and what is known of it from the registry and the stream.
func (s *groupState) look(ctx context.Context, client *xstreamq.Client) {
	if s.err == nil {
		s.err = s.lookAll(ctx, client)
	}
}

func (s *groupState) lookAll(ctx context.Context, client *xstreamq.Client) error {
	var err error
	if s.depth, err = depthOf(ctx, client, s.queue, s.group, s.stream); err != nil {
		return err
	}
	var leases map[string]time.Duration
	if !s.nobody() {
		if leases, err = s.lookAtConsumers(ctx, client); err != nil {
			return err
		}
	}
	if s.depth.Pending > 0 {
		if err := s.lookAtPending(ctx, client, leases); err != nil {
			return err
		}
	}
	if s.depth.Backoff > 0 {
		if s.backoffDue, err = firstDue(ctx, client, s.queue, s.group, xstreamq.InBackoff); err != nil {
			return err
		}
	}
	if s.depth.Delayed > 0 {
		s.delayedDue, err = firstDue(ctx, client, s.queue, "", xstreamq.InDelayed)
	}
	return err
}

// depthOf counts the messages of a group. stream, if not nil, is what was just seen of it: thousands of groups of one queue could
// not be asked for one by one.
func depthOf(ctx context.Context, client *xstreamq.Client, queue, group string, stream *xstreamq.Group) (xstreamq.Depth, error) {
	if stream == nil {
		return client.Depth(ctx, queue, group)
	}
	return client.DepthOf(ctx, queue, *stream)
}

// What progress a group made between two looks.
const (
	moving = "moving"
	still  = "still"
)

// busy reports that there is something to look at again.
func (s *groupState) busy() bool { return s.err == nil && !s.depth.Empty() }

// lookAgain says of the busy groups whether they moved since they were looked at.
func (q *queueState) lookAgain(ctx context.Context, client *xstreamq.Client) {
	found, err := client.StreamGroups(ctx, q.queue)
	now := make(map[string]*xstreamq.Group, len(found))
	for i := range found {
		now[found[i].Name] = &found[i]
	}
	var busy []*groupState
	for _, s := range q.groups {
		if s.busy() {
			busy = append(busy, s)
		}
	}
	spread(len(busy), func(i int) {
		s, stream := busy[i], now[busy[i].group]
		var depth xstreamq.Depth
		if s.err = err; err == nil {
			depth, s.err = depthOf(ctx, client, s.queue, s.group, stream)
		}
		if s.err == nil {
			s.compare(stream, depth)
		}
	})
}

// compare sees whether anything was read or settled. What is published meanwhile is no progress.
func (s *groupState) compare(stream *xstreamq.Group, now xstreamq.Depth) {
	before := s.depth
	read := s.stream != nil && stream != nil && (stream.Delivered != s.stream.Delivered || stream.Unfinished != s.stream.Unfinished) ||
		now.Backlog >= 0 && now.Backlog < before.Backlog
	settled := now.Pending != before.Pending || now.Retry != before.Retry || now.Backoff != before.Backoff || now.Dead != before.Dead
	s.progress = still
	if read || settled {
		s.progress = moving
	}
}

// nobody reports that the group has no consumers, so that they need not be asked for: a worker has one on the queue's stream.
func (s *groupState) nobody() bool {
	return s.missing || s.stream != nil && s.stream.Consumers == 0 && s.depth.Pending+s.depth.Retry == 0
}

// lookAtConsumers counts the workers, and returns how long the leases of each consumer are.
func (s *groupState) lookAtConsumers(ctx context.Context, client *xstreamq.Client) (map[string]time.Duration, error) {
	consumers, err := client.Consumers(ctx, s.queue, s.group)
	leases := make(map[string]time.Duration, len(consumers))
	for _, c := range consumers {
		lease := c.Lease
		if lease == 0 && !strings.HasSuffix(c.Name, "~0") && s.registration != nil {
			lease = s.registration.VisibilityTimeout // of whoever sweeps
		}
		leases[c.Name] = lease
		switch {
		case c.Live:
			s.workers++
		case lease > 0 && c.Idle > lease:
			s.abandoned += c.Pending
			if c.Idle > takenOverBy(lease) {
				s.forsaken += c.Pending
			}
		}
	}
	return leases, err
}

func (s *groupState) lookAtPending(ctx context.Context, client *xstreamq.Client, leases map[string]time.Duration) error {
	looked := 0
	for m, err := range client.Pending(ctx, s.queue, s.group) {
		if err != nil {
			return err
		}
		p := &pendingState{m, leases[m.Consumer]}
		if s.oldest == nil {
			s.oldest = p
		}
		if s.worst == nil || p.overdue() > s.worst.overdue() {
			s.worst = p
		}
		if looked++; looked == pendingLooked {
			break
		}
	}
	return nil
}

// firstDue is when the first message of a set is due. Zero: there is none.
func firstDue(ctx context.Context, client *xstreamq.Client, queue, group string, place xstreamq.Place) (time.Time, error) {
	found, err := client.Peek(ctx, queue, group, xstreamq.PeekOptions{From: place, Count: 1})
	if err != nil || len(found) == 0 {
		return time.Time{}, err
	}
	return found[0].Due, nil
}

// idTime is the time that an entry's id tells; zero when it tells none.
func idTime(id string) time.Time {
	text, _, _ := strings.Cut(id, "-")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
