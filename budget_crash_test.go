package xstreamq_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// supervise runs a worker process, and another one when it ends, until all is done. It returns how many ended. Each is killed
// at its time in lives, if that is not zero.
func (r *leaseRig) supervise(o leaseWorkerOptions, lives func() time.Duration, done func() bool) (ended int) {
	r.t.Helper()
	deadline := time.Now().Add(2 * leasePatience)
	for {
		p := r.worker("w", o)
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_ = p.Wait()
		}()
		var kill <-chan time.Time
		if life := lives(); life > 0 {
			kill = time.After(life)
		}
		look := time.NewTicker(100 * time.Millisecond)
		for running := true; running; {
			select {
			case <-gone:
				ended++
				running = false
			case <-kill:
				_ = p.Process.Kill()
			case <-look.C:
				if done() || time.Now().After(deadline) {
					look.Stop()
					_ = p.Process.Kill()
					<-gone
					return ended
				}
			}
		}
		look.Stop()
	}
}

// quiet says that no message is anywhere but in the DLQ.
func (r *leaseRig) quiet() bool {
	r.t.Helper()
	for _, at := range r.places() {
		if len(at) != 1 || at[0] != "dead" {
			return false
		}
	}
	return true
}

// P5, P6: one of 1,000 messages makes its process exit. It alone is dead, and the other 999 are handled.
//
// Not parallel: processes that start and end all the time need the machine.
func TestMessageThatEndsItsProcessIsDeadAlone(t *testing.T) {
	const maxLost = 5 // the default
	rig := newLeaseRig(t)
	bodies := append(leaseBodies("ok", 500), "exit")
	bodies = append(bodies, leaseBodies("also ok", 499)...)
	ids := rig.publish(bodies...)
	ended := rig.supervise(leaseWorkerOptions{VisibilityTimeout: 500 * time.Millisecond, Backoff: 10 * time.Millisecond},
		func() time.Duration { return 0 }, rig.quiet)
	if diff := cmp.Diff(map[string][]string{ids[500]: {"dead"}}, rig.places()); diff != "" {
		t.Fatalf("where messages are that are not finished (-want +got):\n%s", diff)
	}
	dead := rig.dead()
	wantLeaseFields(t, dead[0], map[string]string{
		"body": "exit", "oid": ids[500], "lc": "6", "reason": "lost-lease",
	}, "err", "at", "from", "by")
	if ended != maxLost+1 {
		t.Errorf("%d processes ended, not MaxLostLeases + 1", ended)
	}
	begun := map[string]bool{}
	for _, n := range rig.journal() {
		begun[n.Body] = begun[n.Body] || n.What == "begin"
	}
	for _, body := range bodies {
		if !begun[body] {
			t.Errorf("no handler ever saw %q", body)
		}
	}
}

// P5: kill -9 again and again spends lost leases, never failures: with MaxRetries 1 no healthy message is "failed".
//
// Not parallel: processes that start and end all the time need the machine.
func TestKilledWorkersSpendNoFailures(t *testing.T) {
	const messages = 1500
	rig := newLeaseRig(t)
	rig.publish(leaseBodies("work", messages)...)
	kills := 0
	rig.supervise(leaseWorkerOptions{VisibilityTimeout: 500 * time.Millisecond, MaxRetries: 1, Backoff: 10 * time.Millisecond},
		func() time.Duration {
			if kills++; kills > 12 {
				return 0
			}
			return 250*time.Millisecond + rand.N(250*time.Millisecond)
		}, rig.quiet)
	if diff := cmp.Diff(map[string][]string{}, rig.places()); diff != "" {
		t.Errorf("where messages are that are not finished (-want +got):\n%s", diff)
	}
	begun, lost := map[string]bool{}, 0
	for _, n := range rig.journal() {
		if n.What != "begin" {
			continue
		}
		begun[n.Body] = true
		lost += n.LostLeases
		if n.Retries != 0 {
			t.Errorf("a healthy message was said to have failed: %+v", n)
		}
	}
	if len(begun) != messages || lost == 0 || kills < 3 {
		t.Errorf("%d of %d messages were handled, %d lost leases, %d workers", len(begun), messages, lost, kills)
	}
}

// RetryMaxLen holds for lost leases too: what finds no room stays pending, is charged once, and comes when there is room.
func TestFullRetryStreamKeepsLostMessagesPending(t *testing.T) {
	t.Parallel()
	const messages, room, lease = 20, 5, time.Second
	rig := newLeaseRig(t)
	worker := rig.worker("a", leaseWorkerOptions{VisibilityTimeout: lease, Concurrency: messages})
	ids := rig.publish(leaseBodies("hold", messages)...)
	redistest.WaitFor(t, leasePatience, "all of them with the worker", func() bool { return len(rig.pending()) == messages })

	var runs leaseRuns
	hold := make(chan struct{})
	c := rig.start(xstreamq.Config{}, xstreamq.SubscribeOptions{VisibilityTimeout: lease, RetryMaxLen: room},
		func(ctx context.Context, m *xstreamq.Message[string]) error {
			runs.add(m)
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return nil
		})
	worker.kill()
	redistest.WaitFor(t, leasePatience, "a full retry stream", func() bool { return len(rig.entries(rig.keys.Retry)) == room })
	redistest.WaitFor(t, leasePatience, "the error in Health", func() bool {
		return leaseLoopError(c.Health(t.Context()), "sweeper") != ""
	})
	count := map[string]int{}
	for id, at := range rig.places() {
		if len(at) != 1 {
			t.Errorf("%s is %v", id, at)
		}
		count[at[0]]++
	}
	if diff := cmp.Diff(map[string]int{"retry": room, "pending": len(ids) - room}, count); diff != "" {
		t.Errorf("where messages are (-want +got):\n%s", diff)
	}
	close(hold)
	redistest.WaitFor(t, leasePatience, "all handled", func() bool { return runs.bodies() == messages })
	if dead := rig.settled(); len(dead) != 0 {
		t.Errorf("dead letters: %v", dead)
	}
	for _, body := range leaseBodies("hold", messages) {
		if all := runs.of(body); len(all) != 1 || all[0].LostLeases != 1 || all[0].Retries != 0 {
			t.Errorf("%q: %+v", body, all)
		}
	}
}
