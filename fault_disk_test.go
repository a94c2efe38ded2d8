package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1: wherever the append-only file ends after a loss of power, a message that was just being moved is where it was or where it
// went: in one place, never in none.
func TestTornAppendOnlyFile(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		verdict error
		place   string
	}{
		"retry":       {errors.New("failed"), "backoff"},
		"dead letter": {xstreamq.DeadLetter(errors.New("no")), "dead"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := faultFastDir(t)
			server := redistest.Start(t, redistest.Options{AOF: "always", Dir: dir})
			rig := newFaultRig(t, server)
			opts := xstreamq.SubscribeOptions{Backoff: xstreamq.Backoff{Initial: time.Hour, Max: time.Hour}}
			c, q := rig.worker(opts, func(context.Context, *xstreamq.Message[string]) error { return tt.verdict })
			id := rig.publish(q, "it")[0]
			moved := func() bool { return strings.Join(rig.places().at[id], "") == tt.place }
			redistest.WaitFor(t, faultPatience, "the message at "+tt.place, moved)
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "appendonlydir", "appendonly.aof.1.incr.aof")
			if redistest.Major(t, rig.redis) < 7 {
				file = filepath.Join(dir, "appendonly.aof")
			}
			server.Kill()
			seen := map[string]bool{}
			for {
				if err := server.Restart(); err != nil {
					return
				}
				at := rig.places().at[id]
				seen[strings.Join(at, " and ")] = true
				if len(at) != 1 {
					break // the publish itself is torn off, or the message is lost
				}
				server.Kill()
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(file, max(0, info.Size()-37)); err != nil {
					t.Fatal(err)
				}
			}
			if entries := faultEntries(rig.do("XRANGE", rig.keys.Queue, "-", "+")); len(entries) > 0 {
				t.Errorf("the queue has the message, and it is nowhere: %v", entries)
			}
			for _, want := range []string{tt.place, "queue (leased)", "queue"} {
				if !seen[want] {
					t.Errorf("it was never seen at %q, only at %v", want, seen)
				}
			}
			if len(seen) != 4 {
				t.Errorf("it was seen at %v", seen)
			}
		})
	}
}

// P1, P5, P9: a server that comes back with an older state, as after a failover to a replica that was behind, costs what was published
// meanwhile. Of what it still knows nothing is stuck, and no lease counts as lost: what had been handled may come again.
func TestServerComesBackOlder(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Dir: faultFastDir(t)})
	rig := newFaultRig(t, server)
	gate := make(chan struct{})
	handle := func(ctx context.Context, m *xstreamq.Message[string]) error {
		if strings.HasPrefix(m.Body, "dead") || strings.HasPrefix(m.Body, "fail") && m.Retries == 0 {
			return errors.New("failed")
		}
		if strings.HasPrefix(m.Body, "held") {
			select {
			case <-gate:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	opts := xstreamq.SubscribeOptions{
		VisibilityTimeout: time.Minute, MaxRetries: 1, MaxLostLeases: xstreamq.NoRetries, Backoff: faultQuick, Concurrency: 10, Prefetch: 5,
	}
	a, q := rig.worker(opts, handle)
	b, _ := rig.worker(opts, handle)
	var bodies []string
	for i := range 40 {
		bodies = append(bodies, fmt.Sprintf("held-%d", i))
	}
	rig.publish(q, "dead-1", "fail-1")
	redistest.WaitFor(t, faultPatience, "a dead letter, and a retry that is handled", func() bool {
		p := rig.places()
		return len(p.dead) == 1 && len(p.at) == 1
	})
	rig.publish(q, bodies...)
	if _, err := q.Publish(t.Context(), "later", xstreamq.WithDelay(time.Second)); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, faultPatience, "handlers that run", func() bool { return rig.runs.active() == 20 })
	rig.do("SAVE")

	close(gate)
	rig.handled(append([]string{"later"}, bodies...))
	rig.publish(q, "forgotten")
	rig.handled([]string{"forgotten"})
	rig.drained()
	server.Kill()
	if err := server.Restart(); err != nil {
		return
	}
	rig.publish(q, "new")
	rig.handled([]string{"new"})
	dead := rig.drained()
	if len(dead) != 1 {
		t.Errorf("dead letters: %v, want the one that always fails", dead)
	}
	for body, run := range rig.runs.all() {
		if run.lost > 0 {
			t.Errorf("%s lost its lease, and no worker died", body)
		}
		if strings.HasPrefix(body, "held") && run.succeeded < 2 {
			t.Errorf("%s was not finished in the state that came back, and did not run again", body)
		}
	}
	rig.healthy(a)
	rig.healthy(b)
}
