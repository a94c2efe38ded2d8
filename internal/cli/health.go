package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

const healthHelp = `Say whether Redis takes the queue's writes and whether every registered group is worked on, and exit
with 1 if not.

With QUEUE it looks at the groups of that queue alone, with QUEUE GROUP at that group, registered or
not. A group is

  idle       nothing waits in it, whether it has workers or not: a job that runs now and then is
             healthy in between
  working    something waits or is being handled, and a worker is alive
  unhealthy  something waits (not delivered yet, to be retried, due, or held by a worker that is
             gone) and no worker is alive; or nobody took over a message whose lease ran out long
             ago (three leases and 15s); or its workers do not read what has waited for 15s; or its
             consumer group is missing from the stream

What a group is doing is looked at twice, up to half a second apart, if something waits in it:
"moving" is progress between the two, "still" is none, which is healthy while handlers are busy. A
worker is alive when it gave a sign of life within its lease or 15s, whichever is longer.

It looks at Redis from outside. What a worker knows of itself, its own probe says: see HealthHandler
in the Go package. Nothing is changed. --json prints one object.`

const healthExample = `  xstreamq health
  xstreamq health orders shipping --timeout 3s     # as a probe
  xstreamq health --json | jq -r '.problems[]?'`

func newHealth(a *app) *cobra.Command {
	return &cobra.Command{
		Use:               "health [QUEUE [GROUP]]",
		Short:             "Say whether Redis and the groups are healthy",
		Long:              healthHelp,
		Example:           healthExample,
		Args:              arguments(0, "QUEUE", "GROUP"),
		ValidArgsFunction: a.completeGroups,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.health(cmd, argument(args, 0), argument(args, 1))
		},
	}
}

// health prints its report also when Redis cannot be reached: for a probe that is an answer too.
func (a *app) health(cmd *cobra.Command, queue, group string) error {
	var r *healthReport
	err := a.look(cmd, func(ctx context.Context, client *xstreamq.Client) error {
		var err error
		r, err = a.checkHealth(ctx, client, queue, group)
		return err
	})
	if err != nil && a.json && !errors.As(err, new(usageError)) {
		if printed := a.print(healthReport{Problems: []string{explain(err)}}); printed != nil {
			return printed
		}
	}
	if err != nil {
		return err
	}
	if err := a.printHealth(r); err != nil {
		return err
	}
	if !r.Healthy {
		return errQuiet
	}
	return nil
}

// healthReport is what health prints with --json.
type healthReport struct {
	Healthy  bool          `json:"healthy"`
	Problems []string      `json:"problems,omitempty"`
	Redis    *redisHealth  `json:"redis,omitempty"`
	Groups   []groupHealth `json:"groups,omitempty"`
	other    []string      // those of Problems that are about no group
}

// redisHealth is the state of the server; an empty role is not known, and null neither.
type redisHealth struct {
	Role        string  `json:"role"`
	RoundTripMS float64 `json:"round_trip_ms"`
	Writable    *bool   `json:"writable"`
	problem     string
}

// groupHealth is the state of a group. A null is not known, or where nothing is pending or waits.
type groupHealth struct {
	Queue         string   `json:"queue"`
	Group         *string  `json:"group"`
	GroupBase64   []byte   `json:"group_base64,omitempty"`
	State         string   `json:"state"`
	LiveWorkers   int      `json:"live_workers"`
	LastSeen      *string  `json:"last_seen"`
	Backlog       *int64   `json:"backlog"`
	Pending       int64    `json:"pending"`
	Retry         int64    `json:"retry"`
	Backoff       int64    `json:"backoff"`
	OldestMS      *int64   `json:"oldest_ms"`
	PendingIdleMS *int64   `json:"oldest_pending_idle_ms"`
	PendingAgeMS  *int64   `json:"oldest_pending_age_ms"`
	Progress      string   `json:"progress,omitempty"`
	Problems      []string `json:"problems,omitempty"`
	detail        string
}

func (a *app) checkHealth(ctx context.Context, client *xstreamq.Client, queue, group string) (*healthReport, error) {
	server, now, err := a.checkRedis(ctx, client)
	if err != nil {
		return nil, err
	}
	r := &healthReport{Redis: server}
	if server.problem != "" {
		r.Problems = append(r.Problems, server.problem)
	}
	queues, _, err := findGroups(ctx, client, queue, group, 0)
	if err != nil {
		return nil, err
	}
	var groups []*groupState
	for _, q := range queues {
		q.groups = slices.DeleteFunc(q.groups, func(g *groupState) bool { return g.registration == nil && group == "" })
		groups = append(groups, q.groups...)
		if q.err != nil && len(q.groups) == 0 {
			r.other = append(r.other, explain(q.err))
		}
	}
	spread(len(groups), func(i int) { groups[i].look(ctx, client) })
	watch(ctx, client, queues)
	for _, q := range queues {
		if err := q.outage(); err != nil {
			return nil, err
		}
	}
	for _, g := range groups {
		h := a.groupHealth(g, now)
		for _, p := range h.Problems {
			r.Problems = append(r.Problems, fmt.Sprintf("%s, group %s: %s", g.queue, g.group, p))
		}
		r.Groups = append(r.Groups, h)
	}
	r.Problems = append(r.Problems, r.other...)
	r.Healthy = len(r.Problems) == 0
	return r, nil
}

// checkRedis looks at the server, and returns its time.
func (a *app) checkRedis(ctx context.Context, client *xstreamq.Client) (*redisHealth, time.Time, error) {
	rc, err := a.server()
	if err != nil {
		return nil, time.Time{}, err
	}
	defer rc.Close()
	var s serverState
	if err := errors.Join(s.askRole(ctx, rc), s.askClock(ctx, rc)); err != nil {
		return nil, time.Time{}, err
	}
	h := &redisHealth{Role: s.roleName(), RoundTripMS: float64(s.roundTrip.Microseconds()) / 1000}
	refused := client.Health(ctx).Redis
	if strings.HasPrefix(refused, "NOPERM") {
		return h, s.now, nil // who only looks need not be able to write
	}
	writable := refused == ""
	h.Writable = &writable
	if !writable {
		h.problem = "Redis refuses writes: " + refused
	}
	return h, s.now, nil
}

// watchFor is how long lies between two looks at what groups do.
const watchFor = time.Second / 2

// watch looks again at groups in which something waits or is pending, and says whether they move.
func watch(ctx context.Context, client *xstreamq.Client, queues []*queueState) {
	var busy []*queueState
	for _, q := range queues {
		if slices.ContainsFunc(q.groups, (*groupState).busy) {
			busy = append(busy, q)
		}
	}
	if len(busy) == 0 {
		return
	}
	pause := watchFor
	if deadline, ok := ctx.Deadline(); ok {
		pause = min(pause, time.Until(deadline)/4)
	}
	select {
	case <-time.After(pause):
	case <-ctx.Done():
	}
	spread(len(busy), func(i int) { busy[i].lookAgain(ctx, client) })
}
