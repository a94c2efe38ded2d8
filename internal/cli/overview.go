package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
)

// groupView is a group in an overview of many.
type groupView struct {
	registration        xstreamq.Registration // of one that is not registered only the names
	registered, present bool
	stream              *xstreamq.Group // nil: it is not there, or it was not looked for
	depth               xstreamq.Depth
	live                int   // workers
	err                 error // why the rest is not known
}

// foreign reports a group of another program whose name no group of ours can have, so that nothing more can be asked about it.
func (v *groupView) foreign() bool { return errors.Is(v.err, xstreamq.ErrInvalidName) }

// atOnce is how many calls an overview has under way.
const atOnce = 16

// groupsOf finds the groups of a queue: those that list finds and those that registered.
func groupsOf(
	ctx context.Context, list func(context.Context, string) ([]xstreamq.Group, error), queue string, registered []xstreamq.Registration,
) ([]groupView, error) {
	views := make([]groupView, 0, len(registered))
	for _, r := range registered {
		views = append(views, groupView{registration: r, registered: true})
	}
	groups, err := list(ctx, queue)
	if errors.Is(err, xstreamq.ErrNoQueue) && len(registered) > 0 {
		return views, nil
	}
	if err != nil {
		return views, err
	}
	at := make(map[string]int, len(views))
	for i := range views {
		at[views[i].registration.Group] = i
	}
	for i := range groups {
		g := &groups[i]
		if _, known := at[g.Name]; !known {
			at[g.Name] = len(views)
			views = append(views, groupView{registration: xstreamq.Registration{Queue: queue, Group: g.Name}})
		}
		v := &views[at[g.Name]]
		if v.present = g.Present; g.Present {
			v.stream = g
		}
	}
	slices.SortFunc(views, func(a, b groupView) int { return strings.Compare(a.registration.Group, b.registration.Group) })
	return views, nil
}

// allGroups finds the groups of every queue in the registry, by queue. A queue that cannot be looked at has its registered
// groups, with the reason.
func allGroups(ctx context.Context, client *xstreamq.Client) ([]groupView, error) {
	registered, err := client.Registered(ctx)
	if err != nil {
		return nil, err
	}
	var queues [][]xstreamq.Registration
	for _, r := range registered {
		if n := len(queues); n == 0 || queues[n-1][0].Queue != r.Queue {
			queues = append(queues, nil)
		}
		queues[len(queues)-1] = append(queues[len(queues)-1], r)
	}
	found := make([][]groupView, len(queues))
	spread(len(queues), func(i int) {
		// The registry was read already: once for all, and not for every queue.
		views, err := groupsOf(ctx, client.StreamGroups, queues[i][0].Queue, queues[i])
		for j := range views {
			views[j].err = err
		}
		found[i] = views
	})
	return slices.Concat(found...), nil
}

// lookAt fills in what a group has.
func (v *groupView) lookAt(ctx context.Context, client *xstreamq.Client, workers bool) {
	if v.err != nil {
		return
	}
	queue, group := v.registration.Queue, v.registration.Group
	if v.depth, v.err = depthOf(ctx, client, queue, group, v.stream); v.err != nil || !workers || group == "" || v.nobody() {
		return
	}
	consumers, err := client.Consumers(ctx, queue, group)
	if err != nil && !errors.Is(err, xstreamq.ErrNoQueue) && !errors.Is(err, xstreamq.ErrNoGroup) {
		v.err = err
	}
	for _, c := range consumers {
		if c.Live {
			v.live++
		}
	}
}

// nobody reports that the group has no consumers, so that they need not be asked for: a worker has one on the queue's stream.
func (v *groupView) nobody() bool {
	return v.stream != nil && v.stream.Consumers == 0 && v.depth.Pending+v.depth.Retry == 0
}

// overview is the groups that a command looks at.
type overview struct {
	groups  []groupView
	workers bool // count them as well
	one     bool // asked for by its name: what is wrong with it is what is wrong
}

// show looks at the groups, some at a time, and shows them in their order. One that Redis refuses to look at is shown as
// well, and makes the whole fail in the end; anything else that goes wrong ends it.
func (o *overview) show(ctx context.Context, client *xstreamq.Client, row func(*groupView) error) error {
	var refused []error
	for some := range slices.Chunk(o.groups, atOnce) {
		spread(len(some), func(i int) { some[i].lookAt(ctx, client, o.workers) })
		for i := range some {
			v := &some[i]
			switch {
			case v.err == nil:
			case o.one:
				return v.err
			case v.foreign():
			case !isRefusal(v.err):
				return v.err
			default:
				refused = append(refused, v.err)
			}
			if err := row(v); err != nil {
				return err
			}
		}
	}
	if len(refused) > 0 {
		return fmt.Errorf("%d of %d groups could not be looked at; the first: %w", len(refused), len(o.groups), refused[0])
	}
	return nil
}

// isRefusal tells what is wrong with one group from what is wrong with all, such as a Redis out of reach.
func isRefusal(err error) bool {
	return errors.As(err, new(*rueidis.RedisError)) || errors.Is(err, xstreamq.ErrNoQueue) || errors.Is(err, xstreamq.ErrNoGroup)
}

// spread calls do for 0 to n-1, some at once.
func spread(n int, do func(i int)) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	wg.Wait()
}
