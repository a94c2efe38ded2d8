package xstreamq_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1, P5, P9: a replica that has missed the last writes takes the master's place, under the same address. What was published meanwhile
// and not handled is lost by Redis, and exactly that; what was acknowledged meanwhile comes again and spends no lease; a group that
// was made meanwhile is made again.
func TestReplicaThatMissedWritesIsPromoted(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t, redistest.Options{Args: []string{"--repl-diskless-sync-delay", "0"}})
	link := redistest.NewProxy(t, master.URL())
	host, port, err := net.SplitHostPort(link.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica := redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host, port}})
	next := newFaultRig(t, replica)
	serverReplicates(t, next)

	r := newFaultRig(t, master)
	r.config = func(cfg *xstreamq.Config) { cfg.Retain = -1 }
	var address atomic.Pointer[string]
	name := func(s *redistest.Server) {
		addr := s.Addr()
		address.Store(&addr)
	}
	name(master)
	r.opts = &rueidis.ClientOption{
		InitAddress: []string{"redis.example:6379"},
		DialCtxFn: func(ctx context.Context, _ string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", *address.Load())
		},
	}
	held, busy := make(chan struct{}), make(chan struct{})
	gates := map[string]chan struct{}{"held": held, "busy": busy}
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: time.Minute, Concurrency: 5, Prefetch: -1, Backoff: faultQuick}
	a, q := r.worker(opts, func(ctx context.Context, m *xstreamq.Message[string]) error {
		kind, _, _ := strings.Cut(m.Body, "-")
		if gate := gates[kind]; gate != nil {
			select {
			case <-gate:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	ids := map[string]string{}
	publish := func(kind string) (bodies []string) {
		for i := range 5 {
			bodies = append(bodies, fmt.Sprintf("%s-%d", kind, i))
		}
		for i, id := range r.publish(q, bodies...) {
			ids[bodies[i]] = id
		}
		return bodies
	}
	r.handled(publish("old"))
	again := publish("held")
	redistest.WaitFor(t, faultPatience, "a replica that knows what is leased", func() bool {
		p := next.places()
		return r.runs.active() == len(again) && len(p.at) == len(again) && p.at[ids[again[0]]][0] == "queue (leased)"
	})

	link.BlackHole()
	close(held)
	r.handled(append(again, publish("missed")...))
	r.drained()
	late := newFaultRuns()
	b, other := r.client()
	if _, err := other.Subscribe("late", late.record(faultFlaky), xstreamq.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	stopStart(t, b)
	publish("busy")
	redistest.WaitFor(t, faultPatience, "a worker with no room", func() bool { return r.runs.active() == 5 })
	var lost []string
	for _, body := range publish("lost") {
		lost = append(lost, ids[body])
	}

	master.Kill()
	next.do("REPLICAOF", "NO", "ONE")
	name(replica)
	close(busy)
	r.redis = next.redis
	redistest.WaitFor(t, faultPatience, "a publish to the new master", func() bool {
		_, err := q.Publish(t.Context(), "new")
		return err == nil
	})
	r.handled([]string{"new"})
	redistest.WaitFor(t, faultPatience, "what was acknowledged in vain, once more", func() bool {
		return !slices.ContainsFunc(again, func(body string) bool { return r.runs.get(body).succeeded < 2 })
	})
	redistest.WaitFor(t, faultPatience, "the other group, made again", func() bool { return late.get("new").succeeded > 0 })
	r.unharmed(r.drained())
	byRedis, byEngine := r.lostBy(ids)
	slices.Sort(byRedis)
	if diff := cmp.Diff(lost, byRedis); diff != "" {
		t.Errorf("lost by Redis (-want +got):\n%s", diff)
	}
	t.Logf("lost by Redis: %v", byRedis)
	if len(byEngine) > 0 {
		t.Errorf("lost although the server has them: %v", byEngine)
	}
	for _, c := range []*xstreamq.Client{a, b} {
		r.healthy(c)
		if took, err := stopWithin(c, faultPatience); err != nil || took > 4*time.Second { // a blocked read takes 5 s
			t.Errorf("Stop: %v after %v", err, took)
		}
	}
}
