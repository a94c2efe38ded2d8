package xstreamq

import (
	"context"
	"fmt"
	"strconv"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// strayPage bounds one look at a consumer's pending entries.
const strayPage = 500

// releaseStrays gives back what Redis says this consumer holds and this process knows nothing of: a read was answered, and the
// answer never came. held is what it does know.
func (s *subscription) releaseStrays(ctx context.Context, l *lane, held map[string]*delivery) error {
	if s.opts.NoVisibilityTimeout {
		return nil // what failed stays pending, and cannot be told apart
	}
	for start := "-"; ; {
		page, err := s.pendingOf(ctx, l, start)
		if err != nil || len(page) == 0 {
			return err
		}
		var strays []string
		for _, id := range page {
			if held[id] == nil {
				strays = append(strays, id)
			}
		}
		refused, _, err := s.release(ctx, l, strays)
		if err != nil {
			return err
		}
		for id, why := range refused {
			s.log.Warn("a message whose read was interrupted stays pending until its lease runs out", "entry", id, "error", why)
		}
		last, ok := wire.ParseID(page[len(page)-1])
		if !ok {
			return fmt.Errorf("xstreamq: the server returned %q for a stream id", page[len(page)-1])
		}
		start = last.Next().String()
	}
}

// pendingOf returns a page of the ids that this consumer holds.
func (s *subscription) pendingOf(ctx context.Context, l *lane, start string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	rc := s.client.redis
	// A command of the builder that only reads is retried by rueidis, closely at first; our loops wait by themselves.
	rows, err := rc.Do(ctx, rc.B().Arbitrary("XPENDING").Keys(l.keys.Source).
		Args(l.group, start, "+", strconv.Itoa(strayPage), s.consumer).Build()).ToArray()
	if err != nil {
		return nil, err
	}
	ids := make([]string, 0, len(rows))
	for i := range rows {
		row, err := rows[i].ToArray()
		if err != nil || len(row) == 0 {
			return nil, fmt.Errorf("xstreamq: unexpected row of XPENDING: %w", err)
		}
		id, err := row[0].ToString()
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// settleRepeats settles once more what was read again while it was held, since its group had been lost: its outcome may have
// been written before that, when there was no lease to end. What was handled is ended; the rest is given back.
func (s *subscription) settleRepeats(ctx context.Context) error {
	var handled, others []*delivery
	for _, d := range s.pool.takeRepeats() {
		switch {
		case s.pool.heldIDs(d.lane)[d.entry.ID] != nil: // lost and read once more: that delivery settles it
		case d.outcome != "":
			handled = append(handled, d)
		default:
			others = append(others, d)
		}
	}
	failed := s.giveBack(ctx, others)
	for _, l := range s.lanes {
		ds := ofLane(handled, l)
		if len(ds) == 0 {
			continue
		}
		if err := s.ack(ctx, l, ds, true); err != nil {
			failed = err
			for _, d := range ds {
				s.park(d, verdict{outcome: d.outcome}, err)
			}
		}
	}
	return failed
}

// readAgain notes that Redis handed over deliveries anew which are, or were until just now, held.
func (p *pool) readAgain(ds []*delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range ds {
		if d.twice {
			continue
		}
		d.twice = true
		if d.state == ended {
			p.repeats = append(p.repeats, d)
		}
	}
}

// takeRepeats returns the deliveries that were read again and are not held any more.
func (p *pool) takeRepeats() []*delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	ds := p.repeats
	p.repeats = nil
	return ds
}

// withoutGhosts ends entries of the queue whose message this process holds from the retry stream, and returns the rest: a group that
// was created again also hands over what had moved on.
func (s *subscription) withoutGhosts(ds []*delivery) []*delivery {
	moved := map[string]bool{}
	for _, d := range s.pool.heldIDs(s.retryLane) {
		moved[d.entry.Original] = true
	}
	fresh := ds[:0]
	for _, d := range ds {
		// An id of its own cannot be forged; that of a delayed message can, and may then be another one's.
		if d.entry.Original != d.entry.ID || !moved[d.entry.Original] {
			fresh = append(fresh, d)
			continue
		}
		d.outcome = Skipped
		s.pool.hold(d)
		s.end(d)
	}
	return fresh
}
