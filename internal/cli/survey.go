package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/xstreamq/xstreamq"
)

// queueState is a queue with those of its groups that a command is about.
type queueState struct {
	queue  string
	groups []*groupState
	left   map[string]bool // registered groups that are not among them
	err    error           // what went wrong when it was asked
}

// findGroups finds the queues and groups that QUEUE and GROUP name, by name; without either, all in the registry. Groups that are on
// a stream and not registered are among them. ErrNoQueue and ErrNoGroup when one is named that is not there. limit is how many
// registered groups it takes, 0 = all; left says how many more there are.
func findGroups(ctx context.Context, client *xstreamq.Client, queue, group string, limit int) (queues []*queueState, left int, err error) {
	rows, err := client.Registered(ctx)
	if err != nil {
		return nil, 0, err
	}
	if queue != "" {
		queues = append(queues, &queueState{queue: queue})
	}
	taken := 0
	for i := range rows {
		r := &rows[i]
		if queue != "" && r.Queue != queue || group != "" && r.Group != group {
			continue
		}
		if limit > 0 && taken == limit {
			left++
			if n := len(queues); n > 0 && queues[n-1].queue == r.Queue {
				queues[n-1].leave(r.Group)
			}
			continue
		}
		taken++
		if len(queues) == 0 || queues[len(queues)-1].queue != r.Queue {
			queues = append(queues, &queueState{queue: r.Queue})
		}
		q := queues[len(queues)-1]
		q.groups = append(q.groups, &groupState{queue: r.Queue, group: r.Group, registration: r})
	}
	if queue != "" {
		queues[0].lookAtStream(ctx, client.Groups, group)
		return queues, left, queues[0].unknown(group)
	}
	// The registry was read already: once for all, and not for every queue.
	spread(len(queues), func(i int) { queues[i].lookAtStream(ctx, client.StreamGroups, group) })
	return queues, left, nil
}

func (q *queueState) leave(group string) {
	if q.left == nil {
		q.left = map[string]bool{}
	}
	q.left[group] = true
}

// lookAtStream finds out which groups are on the stream; group, if not empty, is the only one that counts.
func (q *queueState) lookAtStream(
	ctx context.Context, list func(context.Context, string) ([]xstreamq.Group, error), group string,
) {
	found, err := list(ctx, q.queue)
	if err != nil {
		q.err = err
		for _, g := range q.groups {
			g.err = err
		}
		return
	}
	known := make(map[string]*groupState, len(q.groups))
	for _, g := range q.groups {
		known[g.group] = g
		g.missing = true
	}
	for i := range found {
		g := &found[i]
		switch {
		case !g.Present, q.left[g.Name]:
		case known[g.Name] != nil:
			known[g.Name].stream, known[g.Name].missing = g, false
		case group == "" || g.Name == group:
			q.groups = append(q.groups, &groupState{queue: q.queue, group: g.Name, stream: g})
		}
	}
}

// unknown is what is wrong with a queue or group that was named and is not there.
func (q *queueState) unknown(group string) error {
	switch {
	case errors.Is(q.err, xstreamq.ErrNoQueue):
		return q.err
	case q.err == nil && group != "" && len(q.groups) == 0:
		return fmt.Errorf("queue %q, group %q: %w", q.queue, group, xstreamq.ErrNoGroup)
	}
	return nil
}

// outage is what went wrong with Redis itself, rather than with this queue.
func (q *queueState) outage() error {
	outage := func(err error) bool { return err != nil && !isRefusal(err) && !errors.Is(err, xstreamq.ErrInvalidName) }
	if outage(q.err) {
		return q.err
	}
	for _, s := range q.groups {
		if outage(s.err) {
			return s.err
		}
	}
	return nil
}
