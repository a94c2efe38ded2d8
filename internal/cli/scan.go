package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/xstreamq/xstreamq"
)

// scanning is the flag of a command that looks at the queues of the registry, and may look for others.
type scanning struct{ wanted bool }

func (s *scanning) addFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&s.wanted, "scan", false, "look through all keys of Redis for queues that no group is registered for as well")
}

func (s *scanning) check(queue string) error {
	if s.wanted && queue != "" {
		return usageError{errors.New("--scan looks for queues, and does not go with QUEUE")}
	}
	return nil
}

// others finds the queues that are not known yet.
func (s *scanning) others(ctx context.Context, client *xstreamq.Client, known func(queue string) bool) ([]string, error) {
	if !s.wanted {
		return nil, nil
	}
	queues, err := client.Queues(ctx)
	return slices.DeleteFunc(queues, known), err
}

// addViews adds to groups, which are ordered by queue, those of other queues. One without any has a view without a group.
func (s *scanning) addViews(ctx context.Context, client *xstreamq.Client, groups []groupView) ([]groupView, error) {
	queues, err := s.others(ctx, client, func(queue string) bool {
		return slices.ContainsFunc(groups, func(v groupView) bool { return v.registration.Queue == queue })
	})
	if err != nil {
		return nil, err
	}
	found := make([][]groupView, len(queues))
	spread(len(queues), func(i int) {
		views, err := groupsOf(ctx, client.StreamGroups, queues[i], nil)
		if len(views) == 0 {
			views = []groupView{{registration: xstreamq.Registration{Queue: queues[i]}, err: err}}
		}
		found[i] = views
	})
	groups = append(groups, slices.Concat(found...)...)
	slices.SortStableFunc(groups, func(a, b groupView) int { return strings.Compare(a.registration.Queue, b.registration.Queue) })
	return groups, nil
}

// addQueues adds to queues, which are ordered by name, the others with the groups that are on their streams.
func (s *scanning) addQueues(ctx context.Context, client *xstreamq.Client, queues []*queueState) ([]*queueState, error) {
	names, err := s.others(ctx, client, func(queue string) bool {
		return slices.ContainsFunc(queues, func(q *queueState) bool { return q.queue == queue })
	})
	if err != nil {
		return nil, err
	}
	others := make([]*queueState, len(names))
	spread(len(names), func(i int) {
		others[i] = &queueState{queue: names[i]}
		others[i].lookAtStream(ctx, client.StreamGroups, "")
	})
	queues = append(queues, others...)
	slices.SortFunc(queues, func(a, b *queueState) int { return strings.Compare(a.queue, b.queue) })
	return queues, nil
}
