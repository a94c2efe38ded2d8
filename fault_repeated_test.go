package xstreamq_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1, P9: a Redis that is killed ten times within seconds ends no loop: after each time a message goes its whole way, retry
// included, and in the end every loop makes progress without an error.
func TestTenRestartsEndNoLoop(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: "always", Dir: faultFastDir(t)})
	rig := newFaultRig(t, server)
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 10 * time.Second, Backoff: faultQuick}
	c, q := rig.worker(opts, faultFlaky)
	loops := len(c.Health(t.Context()).Subscriptions[0].Loops)
	for n := range 10 {
		server.Kill()
		rig.wait(200 * time.Millisecond) // the loops notice
		if err := server.Restart(); err != nil {
			return
		}
		body, tries := "", 0
		redistest.WaitFor(t, faultPatience, "a publish", func() bool {
			// Each try has a body of its own: one whose outcome is unknown may be there.
			tries++
			body = fmt.Sprintf("flaky-%d-%d", n, tries)
			_, err := q.Publish(t.Context(), body)
			return err == nil
		})
		rig.handled([]string{body})
	}
	if dead := rig.drained(); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	rig.once()
	rig.healthy(c)
	var h xstreamq.SubscriptionHealth
	defer func() { t.Logf("%+v", h) }()
	redistest.WaitFor(t, faultPatience, "every loop without an error", func() bool {
		h = c.Health(t.Context()).Subscriptions[0]
		return len(h.Loops) == loops && !slices.ContainsFunc(h.Loops, func(l xstreamq.LoopHealth) bool { return !l.Fresh || l.Error != "" })
	})
}

// P1, P9: a client that gives its connections a second to answer reads for longer than that without an error, and loses nothing when
// the server pauses.
func TestShortClientTimeoutAgainstBlockedReads(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	rig := newFaultRig(t, server)
	rc, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, DisableCache: true, AlwaysPipelining: true, ConnWriteTimeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rc.Close)
	c, q := rig.clientOn(rc)
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 20 * time.Second, Backoff: faultQuick}
	if _, err := q.Subscribe(faultGroup, rig.runs.record(faultFlaky), opts); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	started := rig.log.count()
	rig.wait(6 * time.Second) // a read blocks for 5s
	if n := rig.log.count(); n > started {
		t.Errorf("an idle worker logs:\n%s", rig.log)
	}

	_, past := rig.client()
	var bodies []string
	for n := range 20 {
		if n%10 == 5 {
			rig.do("CLIENT", "PAUSE", "1500", "ALL")
		}
		bodies = append(bodies, []string{"flaky", "ok"}[n%2]+fmt.Sprintf("-%d", n))
		rig.publish(past, bodies[n])
	}
	rig.handled(bodies)
	if dead := rig.drained(); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	rig.once()
	rig.healthy(c)
	if rig.log.has("panicked") || strings.Count(rig.log.String(), "\n") > 30 {
		t.Errorf("it logs too much:\n%s", rig.log)
	}
}

// clientOn is client on a connection of the test's own.
func (r *faultRig) clientOn(rc rueidis.Client) (*xstreamq.Client, *xstreamq.Queue[string]) {
	r.t.Helper()
	c, err := xstreamq.New(rc, r.clientConfig())
	if err != nil {
		r.t.Fatal(err)
	}
	return r.queueOf(c)
}
