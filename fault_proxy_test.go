package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1, P3, P5: a connection that is cut while an outcome is written, before Redis has seen it or before its answer has come, costs
// neither the message nor the outcome, and writes nothing twice.
func TestConnectionCutWhileSettling(t *testing.T) {
	t.Parallel()
	const why = "a failure with a text of its own"
	refuse := errors.New(why)
	for _, tt := range []struct {
		name  string
		match string
		first error // what the handler returns the first time
		begun int
		dead  faultDead
	}{
		{name: "ack", match: "XACK", begun: 1},
		{name: "retry", match: why, first: refuse, begun: 2},
		{name: "dead letter", match: why, first: xstreamq.DeadLetter(refuse), begun: 1, dead: faultDead{`"it"`, "rejected", "1", ""}},
		{name: "release", match: why, first: xstreamq.Release(refuse), begun: 2},
	} {
		for _, executed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, executed: %v", tt.name, executed), func(t *testing.T) {
				t.Parallel()
				rig := sharedFaultRig(t)
				proxy := redistest.NewProxy(t, rig.url)
				rig.url = proxy.URL()
				var told, unknown atomic.Int32
				rig.config = func(c *xstreamq.Config) {
					c.Observer.Settled = func(s xstreamq.Settled) {
						told.Add(int32(s.Count))
						if s.Outcome == xstreamq.Unknown {
							unknown.Add(int32(s.Count))
						}
					}
				}
				_, q := rig.worker(xstreamq.SubscribeOptions{Backoff: faultQuick}, func(_ context.Context, m *xstreamq.Message[string]) error {
					switch {
					case m.Body == "warm-up" && m.Attempt == 1:
						return errors.New("so that the server knows the script")
					case m.Body == "it" && rig.runs.get("it").begun == 1:
						return tt.first
					}
					return nil
				})
				rig.publish(q, "warm-up")
				rig.handled([]string{"warm-up"})
				rig.drained()
				// The cut is not to take the answer to these along.
				redistest.WaitFor(t, faultPatience, "both outcomes of the warm-up", func() bool { return told.Load() == 2 })
				cut := proxy.CutBeforeRequest
				if executed {
					cut = proxy.CutAfterRequest
				}
				fired := cut([]byte(tt.match))
				direct := *rig
				direct.url = redistest.URL(t)
				_, publisher := direct.client()
				id := rig.publish(publisher, "it")[0]
				<-fired
				if tt.dead == (faultDead{}) {
					rig.handled([]string{"it"})
				} else {
					redistest.WaitFor(t, faultPatience, "a dead letter", func() bool { return len(rig.places().dead) > 0 })
				}
				if got := rig.drained()[id]; got != tt.dead {
					t.Errorf("the dead letter is %+v, want %+v", got, tt.dead)
				}
				rig.once()
				if got := rig.runs.get("it").begun; got != tt.begun {
					t.Errorf("the handler ran %d times, want %d", got, tt.begun)
				}
				redistest.WaitFor(t, faultPatience, "the count of unknown outcomes", func() bool {
					return executed == (unknown.Load() == 1)
				})
			})
		}
	}
}

// P3, P5: a message whose read was answered, and the answer never came, is given back at once: no lease runs out, none is spent.
func TestConnectionCutWhileReading(t *testing.T) {
	t.Parallel()
	for _, lane := range []string{"queue", "retry"} {
		t.Run(lane, func(t *testing.T) {
			t.Parallel()
			rig := sharedFaultRig(t)
			proxy := redistest.NewProxy(t, rig.url)
			rig.url = proxy.URL()
			gate := make(chan struct{})
			opts := xstreamq.SubscribeOptions{
				VisibilityTimeout: 10 * time.Minute, MaxLostLeases: xstreamq.NoRetries, Concurrency: 1, Prefetch: -1, Backoff: faultQuick,
			}
			_, q := rig.worker(opts, func(ctx context.Context, m *xstreamq.Message[string]) error {
				if lane == "retry" && m.Retries == 0 {
					return errors.New("to the retry stream")
				}
				select {
				case <-gate:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
				return nil
			})
			bodies := []string{"1", "2", "3"}
			rig.publish(q, bodies...)
			redistest.WaitFor(t, faultPatience, "one running and two waiting in the stream", func() bool {
				waiting := 0
				for _, at := range rig.places().at {
					if strings.Join(at, "") == lane {
						waiting++
					}
				}
				return waiting == 2 && rig.runs.active() == 1
			})
			group := faultGroup
			if lane == "retry" {
				group += "-retry"
			}
			fired := proxy.CutAfterRequest(fmt.Appendf(nil, "$5\r\nGROUP\r\n$%d\r\n%s\r\n", len(group), group))
			close(gate)
			<-fired
			rig.handled(bodies)
			if dead := rig.drained(); len(dead) > 0 {
				t.Errorf("dead letters: %v", dead)
			}
			rig.once()
		})
	}
}

// P1, P3, P9: a network that carries nothing for a while, for less or more than a command may take, or that is cut again and again,
// costs no message and no lease.
func TestBadNetworkUnderLoad(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]func(r *faultRig, p *redistest.Proxy){
		"silent for 2s": func(r *faultRig, p *redistest.Proxy) {
			p.BlackHole()
			r.wait(2 * time.Second)
			p.Pass()
		},
		"silent for 7s": func(r *faultRig, p *redistest.Proxy) {
			p.BlackHole()
			r.wait(7 * time.Second)
			p.Pass()
		},
		"no answers for 2s": func(r *faultRig, p *redistest.Proxy) {
			p.SwallowReplies()
			r.wait(2 * time.Second)
			p.Pass()
		},
		"cut": func(r *faultRig, p *redistest.Proxy) {
			for range 10 {
				before := r.runs.succeeded()
				redistest.WaitFor(r.t, faultPatience, "progress", func() bool { return r.runs.succeeded() >= before+50 })
				p.Cut()
			}
		},
		"slow": func(r *faultRig, p *redistest.Proxy) {
			p.Delay(300 * time.Millisecond)
			r.wait(2 * time.Second)
			p.Pass()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := sharedFaultRig(t)
			direct := *rig
			_, q := direct.client()
			proxy := redistest.NewProxy(t, rig.url)
			rig.url = proxy.URL()
			opts := xstreamq.SubscribeOptions{VisibilityTimeout: 20 * time.Second, Backoff: faultQuick}
			a, _ := rig.worker(opts, faultFlaky)
			b, _ := rig.worker(opts, faultFlaky)
			load := rig.load(q, 4)
			redistest.WaitFor(t, faultPatience, "progress", func() bool { return rig.runs.succeeded() >= 100 })
			bad(rig, proxy)
			rig.handled(load.end())
			if dead := rig.drained(); len(dead) > 0 {
				t.Errorf("dead letters: %v", dead)
			}
			rig.once()
			rig.healthy(a)
			rig.healthy(b)
			if n := rig.log.count(); n > 60 {
				t.Errorf("%d lines were logged:\n%s", n, rig.log)
			}
		})
	}
}
