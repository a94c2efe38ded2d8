package xstreamq

import (
	"context"
	"fmt"
)

// releasePage bounds one call of the release script.
const releasePage = 100

// giveBack releases deliveries that no handler has begun, unharmed, so that another worker gets them at once. What cannot be
// written now is left to the settler.
func (s *subscription) giveBack(ctx context.Context, ds []*delivery) error {
	var failed error
	for _, l := range s.lanes {
		mine := ofLane(ds, l)
		refused, done, err := s.release(ctx, l, idsOf(mine))
		if err != nil {
			failed = err
		}
		for i, d := range mine {
			if reason := refused[d.entry.ID]; reason != nil {
				s.park(d, verdict{outcome: Released}, reason)
			} else if i < done {
				s.pool.forget(d)
			} else {
				s.park(d, verdict{outcome: Released}, err)
			}
		}
	}
	return failed
}

func ofLane(ds []*delivery, l *lane) []*delivery {
	var out []*delivery
	for _, d := range ds {
		if d.lane == l {
			out = append(out, d)
		}
	}
	return out
}

func idsOf(ds []*delivery) []string {
	ids := make([]string, len(ds))
	for i, d := range ds {
		ids[i] = d.entry.ID
	}
	return ids
}

// release gives entries back by id. It returns those that Redis refused, and how many it got to: fewer than all with an error.
func (s *subscription) release(ctx context.Context, l *lane, ids []string) (refused map[string]error, done int, err error) {
	refused = map[string]error{}
	for done < len(ids) {
		page := ids[done:min(done+releasePage, len(ids))]
		n, err := s.releaseSome(ctx, l, page, refused)
		if err != nil {
			return refused, done, err
		}
		done += n
	}
	return refused, done, nil
}

func (s *subscription) releaseSome(ctx context.Context, l *lane, ids []string, refused map[string]error) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	reply, err := runRelease(ctx, s.client.redis, l.keys, releaseArgs{
		Group: l.group, Consumer: s.consumer, Ours: l.ours, Cap: int64(s.opts.RetryMaxLen), IDs: ids,
	}).ToArray()
	if err != nil {
		return 0, err
	}
	if len(reply) == 0 || len(reply) > len(ids) {
		return 0, fmt.Errorf("xstreamq: %d answers for %d releases", len(reply), len(ids))
	}
	released := 0
	for i := range reply {
		if n, err := reply[i].AsInt64(); err == nil {
			released += int(n)
			continue
		}
		why, _ := reply[i].ToString() // an error text: nothing else is left
		refused[ids[i]] = fmt.Errorf("xstreamq: releasing %s: %s", ids[i], why)
	}
	s.observe(Released, "", released)
	return len(reply), nil
}
