package xstreamq

import (
	"context"
	"time"

	"github.com/xstreamq/xstreamq/internal/service"
)

// Consumers of vanished workers that hold nothing are deleted.
const (
	reapEvery = time.Minute
	reapIdle  = 5 * time.Minute
	// reapPage is how many one call to Redis deletes.
	reapPage = 500
)

// newReaper returns the loop that deletes consumers of vanished workers.
func (s *subscription) newReaper() *service.Loop {
	step := func(ctx context.Context) (time.Duration, error) {
		for _, l := range s.lanes {
			names, err := s.idleConsumers(ctx, l, reapIdle)
			if err == nil {
				err = s.client.reap(ctx, l, names)
			}
			if err != nil && !groupGone(err) {
				return 0, err
			}
		}
		return reapEvery, nil
	}
	return service.New(service.Options{
		Name: "reaper", Step: step, Timeout: 2 * commandTimeout, Quiet: reapEvery + 15*time.Second, OnError: s.loopError("reaper"),
	})
}

// idleConsumers returns those that seem to hold nothing and gave no sign of life for so long. The list is read here and not by the
// script, which would take five times as long over it.
func (s *subscription) idleConsumers(ctx context.Context, l *lane, atLeast time.Duration) ([]string, error) {
	rc := s.client.redis
	all, err := rc.Do(ctx, rc.B().Arbitrary("XINFO", "CONSUMERS").Keys(l.keys.Source).Args(l.group).Build()).ToArray()
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range all {
		one, err := readConsumer(&all[i])
		if err != nil {
			return nil, err
		}
		if one.Pending == 0 && one.Idle >= atLeast {
			names = append(names, one.Name)
		}
	}
	return names, nil
}

// reap deletes those of the consumers that hold nothing.
func (c *Client) reap(ctx context.Context, l *lane, names []string) error {
	for len(names) > 0 {
		n := min(len(names), reapPage)
		if err := runReap(ctx, c.redis, l.keys, reapArgs{Group: l.group, Names: names[:n]}).Error(); err != nil {
			return err
		}
		names = names[n:]
	}
	return nil
}
