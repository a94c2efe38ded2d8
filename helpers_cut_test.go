package xstreamq_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// cutLease is a lease that outlasts a busy machine, and not the deadline of a command.
const cutLease = 2 * time.Second

// cutRun is one cut: a rig before which lies a proxy that will cut once.
type cutRun struct {
	*faultRig // its workers and clients go through the proxy

	point   *cutPoint
	kind    cutKind
	parts   []string
	scripts map[string]cutSource
	proxy   *redistest.Proxy
	fired   <-chan struct{}
	direct  *faultRig // the same, past the proxy
	clients []*xstreamq.Client

	gate    chan struct{} // "long" messages run until it is open
	open    func()
	mu      sync.Mutex
	unknown int // outcomes reported as such
	ids     map[string]string
	working bool // somebody handles what is there
}

func newCutRun(t *testing.T, p *cutPoint, kind cutKind, scripts map[string]cutSource) *cutRun {
	t.Helper()
	c := &cutRun{
		faultRig: sharedFaultRig(t), point: p, kind: kind, parts: slices.Clone(p.request.parts), scripts: scripts,
		gate: make(chan struct{}), ids: map[string]string{},
	}
	c.open = sync.OnceFunc(func() { close(c.gate) })
	for i, part := range c.parts {
		if s, ok := scripts[strings.Trim(part, "{}")]; ok && part[0] == '{' {
			c.parts[i] = "\r\n" + s.sha + "\r\n"
		}
	}
	c.load()
	c.config = func(cfg *xstreamq.Config) {
		cfg.Observer.Settled = func(s xstreamq.Settled) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if s.Outcome == xstreamq.Unknown {
				c.unknown += s.Count
			}
		}
	}
	c.before(c.faultRig)
	t.Cleanup(c.open)
	return c
}

// load has the server know all scripts, so that none is sent with its text.
func (c *cutRun) load() {
	c.t.Helper()
	for _, s := range c.scripts {
		c.do("SCRIPT", "LOAD", s.text)
	}
}

// before puts the proxy in front of a rig.
func (c *cutRun) before(rig *faultRig) {
	c.t.Helper()
	direct := *rig
	c.faultRig, c.direct = rig, &direct
	c.proxy = redistest.NewProxy(c.t, rig.url)
	rig.url = c.proxy.URL()
}

// check runs the scenario, then holds the oracle against what it left.
func (c *cutRun) check() (result string) {
	c.t.Helper()
	result = c.point.run(c)
	for _, cl := range c.clients {
		_ = cl.Close() // what it says may be part of a scenario; here only its end counts
	}
	c.proxy.Close()
	c.leavesNothing()
	return result
}

// inside marks every goroutine that f leads to, so that it is known if it outlives the run.
func (c *cutRun) inside(f func()) {
	pprof.Do(context.Background(), pprof.Labels("cut", c.t.Name()), func(context.Context) { f() })
}

// leavesNothing waits for the end of all goroutines of the run's clients.
func (c *cutRun) leavesNothing() {
	c.t.Helper()
	var left string
	defer func() {
		if left != "" {
			c.t.Logf("goroutines that are left:\n%s", left)
		}
	}()
	redistest.WaitFor(c.t, faultPatience, "the end of all goroutines", func() bool {
		var all bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
			c.t.Fatal(err)
		}
		left = ""
		for g := range strings.SplitSeq(all.String(), "\n\n") {
			if strings.Contains(g, fmt.Sprintf(`"cut":%q`, c.t.Name())) {
				left += g + "\n"
			}
		}
		return left == ""
	})
}

// arm sets the trap: the next request of the point is cut.
func (c *cutRun) arm() { c.fired = c.proxy.CutAt(c.kind.cut, c.parts...) }

// await waits until the cut has happened. A point that is never reached is a failure.
func (c *cutRun) await() {
	c.t.Helper()
	select {
	case <-c.fired:
	case <-time.After(faultPatience):
		c.t.Fatalf("the request was never sent: %q\nlog:\n%s", c.parts, c.log)
	}
}

// through opens a client whose connections can be cut.
func (c *cutRun) through() (cl *xstreamq.Client, q *xstreamq.Queue[string]) {
	c.t.Helper()
	return c.client(c.faultRig)
}

// past opens a client that no cut concerns.
func (c *cutRun) past() (cl *xstreamq.Client, q *xstreamq.Queue[string]) {
	c.t.Helper()
	return c.client(c.direct)
}

func (c *cutRun) client(rig *faultRig) (cl *xstreamq.Client, q *xstreamq.Queue[string]) {
	c.t.Helper()
	c.inside(func() { cl, q = rig.client() })
	c.clients = append(c.clients, cl)
	return cl, q
}

// options are those of all workers, changed by more.
func (c *cutRun) options(more ...func(*xstreamq.SubscribeOptions)) xstreamq.SubscribeOptions {
	o := xstreamq.SubscribeOptions{
		VisibilityTimeout: cutLease, Concurrency: 2, Prefetch: -1, Backoff: faultQuick,
		MaxRetries: 1, MaxLostLeases: 3,
	}
	for _, f := range more {
		f(&o)
	}
	return o
}

// work starts a worker whose connections can be cut.
func (c *cutRun) work(more ...func(*xstreamq.SubscribeOptions)) *xstreamq.Client {
	c.t.Helper()
	return c.start(c.faultRig, c.options(more...))
}

func (c *cutRun) start(rig *faultRig, o xstreamq.SubscribeOptions) *xstreamq.Client {
	c.t.Helper()
	cl, q := c.client(rig)
	if _, err := q.Subscribe(faultGroup, c.runs.record(c.handle), o); err != nil {
		c.t.Fatal(err)
	}
	c.inside(func() {
		ctx, cancel := context.WithTimeout(c.t.Context(), faultPatience)
		defer cancel()
		if err := cl.Start(ctx); err != nil {
			c.t.Fatal(err)
		}
	})
	c.working = true
	return cl
}

// handle does what the first word of a body says.
func (c *cutRun) handle(ctx context.Context, m *xstreamq.Message[string]) error {
	kind, _, _ := strings.Cut(m.Body, "-")
	switch {
	case kind == "flaky" && m.Retries == 0, kind == "bad":
		return errors.New("failed: " + m.Body)
	case kind == "reject":
		return xstreamq.DeadLetter(errors.New("rejected: " + m.Body))
	case kind == "release" && c.runs.get(m.Body).begun == 1:
		return xstreamq.Release(errors.New("not now: " + m.Body))
	case kind == "told" && c.runs.get(m.Body).begun == 1: // runs until its lease is lost
		<-ctx.Done()
		return context.Cause(ctx)
	case kind == "long":
		select {
		case <-c.gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	case kind == "slow" && m.Retries == 0, kind == "left" && c.runs.get(m.Body).begun == 1: // fails, but not before the gate is open
		<-c.gate
		return errors.New("failed: " + m.Body)
	}
	return nil
}

// publish stores messages past the proxy.
func (c *cutRun) publish(bodies ...string) {
	c.t.Helper()
	_, q := c.past()
	c.inside(func() {
		for i, id := range c.faultRig.publish(q, bodies...) {
			c.ids[bodies[i]] = id
		}
	})
}

// running waits until a message is in its handler.
func (c *cutRun) running(body string) {
	c.t.Helper()
	redistest.WaitFor(c.t, faultPatience, body+" in its handler", func() bool { return c.runs.get(body).active > 0 })
}

// end drains everything and holds the oracle against it. It returns what became of the messages; what is the same of all is said once.
func (c *cutRun) end(bodies ...string) string {
	c.t.Helper()
	if !c.working {
		c.start(c.direct, c.options())
	}
	c.drain(bodies)
	for _, cl := range c.clients {
		if !strings.Contains(fmt.Sprint(cl.Healthy(c.t.Context())), "stopped or draining") {
			c.inside(func() { c.healthy(cl) })
		}
	}
	c.holds()
	var all []string
	for _, body := range bodies {
		if what := c.became(body); !slices.Contains(all, what) {
			all = append(all, what)
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// drain waits until each message is handled or dead, and nothing else is anywhere; never is one in two places.
func (c *cutRun) drain(bodies []string) {
	c.t.Helper()
	p := c.places()
	defer func() {
		if c.t.Failed() {
			c.t.Logf("in Redis: %s\nhandled: %+v\nlog:\n%s", p.some(), c.runs.all(), c.log)
		}
	}()
	redistest.WaitFor(c.t, faultPatience, "everything handled or dead", func() bool {
		p = c.places()
		if twice := p.twice(); len(twice) > 0 {
			c.t.Fatalf("in two places: %s", strings.Join(twice, "; "))
		}
		dead := map[string]bool{}
		for _, d := range p.dead {
			dead[strings.Trim(d.body, `"`)] = true
		}
		return len(p.at) == len(p.dead) && !slices.ContainsFunc(bodies, func(body string) bool {
			run := c.runs.get(body)
			return run.active > 0 || run.succeeded == 0 && !dead[body]
		})
	})
}

// holds checks that no budget was spent that should not be, nobody is dead who should not be, and no message ran twice at a time.
func (c *cutRun) holds() {
	c.t.Helper()
	allow := c.point.allow
	losses := allow.losses
	if c.kind.cut == redistest.SwallowReply {
		losses += allow.swallow
	}
	for body, run := range c.runs.all() {
		if run.retries > allow.failures || run.lost > losses || run.most > 1 && !allow.overlap {
			c.t.Errorf("%s: %+v; allowed are %d failures and %d lost leases, and no two runs at a time\nlog:\n%s",
				body, run, allow.failures, losses, c.log)
		}
	}
	if dead := c.places().dead; len(dead) > 0 && !allow.dead {
		c.t.Errorf("healthy messages are dead: %v", dead)
	}
}

// became says what became of a message.
func (c *cutRun) became(body string) string {
	run := c.runs.get(body)
	var parts []string
	for _, n := range []struct {
		n    int
		what string
	}{{run.retries, "failed"}, {run.lost, "lost its lease"}, {run.succeeded, "handled"}} {
		if n.n > 0 {
			parts = append(parts, n.what+" "+cutTimes(n.n))
		}
	}
	for _, d := range c.places().dead {
		if strings.Trim(d.body, `"`) == body {
			parts = append(parts, fmt.Sprintf("dead once (%s)", d.reason))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "never handled")
	}
	return strings.Join(parts, ", ")
}

func cutTimes(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// settled adds to a result whether the engine said that it could not tell if its write had been done. With that the run is over.
func (c *cutRun) settled(result string) string {
	c.t.Helper()
	for _, cl := range c.clients {
		redistest.WaitFor(c.t, faultPatience, "every outcome written", func() bool {
			return !slices.ContainsFunc(cl.Health(c.t.Context()).Subscriptions, func(s xstreamq.SubscriptionHealth) bool { return s.Unsettled > 0 })
		})
		c.inside(func() {
			if err := cl.Close(); err != nil { // once it has returned, everything was told
				c.t.Errorf("Close: %v", err)
			}
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unknown > 0 {
		return result + ", reported as unknown"
	}
	return result
}
