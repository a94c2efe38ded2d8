package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// sharedFaultRig is a rig on the server that all tests share.
func sharedFaultRig(t *testing.T) *faultRig {
	t.Helper()
	prefix := redistest.Prefix(t)
	return &faultRig{
		t: t, url: redistest.URL(t), prefix: prefix, keys: keys.ForGroup(prefix, faultQueue, faultGroup),
		redis: redistest.Client(t), log: newFaultLog(), runs: newFaultRuns(),
	}
}

// P1, P9: when a consumer group is destroyed while two workers hold messages, it comes back at once, nothing is lost, and no
// worker runs a message twice at a time.
func TestGroupDestroyedWhileHeld(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name               string
		messages, prefetch int
	}{
		{"queue", 40, 3}, {"retry", 40, 3}, // both workers are full
		{"queue", 8, -1}, {"retry", 8, -1}, // both have room to read what they hold once more
	} {
		which := tt.name
		t.Run(fmt.Sprintf("%s, %d messages", which, tt.messages), func(t *testing.T) {
			t.Parallel()
			rig := sharedFaultRig(t)
			gate := make(chan struct{})
			open := sync.OnceFunc(func() { close(gate) })
			t.Cleanup(open)
			// The messages of the retry stream have failed once before they wait at the gate.
			handle := faultGate(gate)
			if which == "retry" {
				handle = func(ctx context.Context, m *xstreamq.Message[string]) error {
					if m.Retries == 0 {
						return errors.New("failed")
					}
					select {
					case <-gate:
					case <-ctx.Done():
						return context.Cause(ctx)
					}
					if strings.HasPrefix(m.Body, "fail") && m.Retries == 1 {
						return errors.New("failed again")
					}
					return nil
				}
			}
			opts := xstreamq.SubscribeOptions{VisibilityTimeout: 3 * time.Second, Backoff: faultQuick, Concurrency: 6, Prefetch: tt.prefetch}
			workers := []*faultRuns{newFaultRuns(), newFaultRuns()}
			var q *xstreamq.Queue[string]
			for _, runs := range workers {
				_, q = rig.worker(opts, runs.record(handle))
			}
			var bodies []string
			for i := range tt.messages / 2 {
				bodies = append(bodies, fmt.Sprintf("ok-%d", i), fmt.Sprintf("fail-%d", i))
			}
			rig.publish(q, bodies...)
			redistest.WaitFor(t, faultPatience, "handlers at the gate", func() bool {
				return workers[0].active()+workers[1].active() == min(tt.messages, 2*opts.Concurrency)
			})
			stream, group := rig.keys.Queue, faultGroup
			if which == "retry" {
				stream, group = rig.keys.Retry, keys.RetryGroup(faultGroup)
			}
			for range 3 {
				rig.do("XGROUP", "DESTROY", stream, group)
				redistest.WaitFor(t, faultPatience, "the group again", func() bool {
					_, err := rig.try("XPENDING", stream, group)
					return err == nil
				})
			}
			open()
			rig.handled(bodies)
			if dead := rig.drained(); len(dead) > 0 {
				t.Errorf("dead letters: %v", dead)
			}
			for i, runs := range workers {
				for body, run := range runs.all() {
					if run.most > 1 || run.lost > 0 {
						t.Errorf("worker %d ran %s %d times at once; %d lost leases, and no worker died", i, body, run.most, run.lost)
					}
				}
			}
			if n := rig.log.count(); n > 60 {
				t.Errorf("%d lines were logged:\n%s", n, rig.log)
			}
		})
	}
}

// P9: a queue's group that is created again also hands over what has moved to the retry stream. A worker that runs such a message
// does not begin it a second time.
func TestGroupDestroyedWhileRetried(t *testing.T) {
	t.Parallel()
	rig := sharedFaultRig(t)
	rig.config = func(c *xstreamq.Config) { c.CompactEvery = -1 } // the entry stays in the queue
	gate := make(chan struct{})
	_, q := rig.worker(xstreamq.SubscribeOptions{Backoff: faultQuick}, func(ctx context.Context, m *xstreamq.Message[string]) error {
		if m.Body == "it" && m.Retries == 0 {
			return errors.New("failed")
		}
		if m.Body == "it" {
			<-gate
		}
		return nil
	})
	rig.publish(q, "it")
	redistest.WaitFor(t, faultPatience, "the retry", func() bool { return rig.runs.get("it").begun == 2 })
	rig.do("XGROUP", "DESTROY", rig.keys.Queue, faultGroup)
	rig.publish(q, "next") // behind the entry that comes again
	rig.handled([]string{"next"})
	redistest.WaitFor(t, faultPatience, "the retry alone", func() bool {
		return len(rig.places().at) == 1
	})
	close(gate)
	rig.handled([]string{"it"})
	rig.drained()
	if run := rig.runs.get("it"); run.begun != 2 || run.most != 1 || run.lost > 0 {
		t.Errorf("the message ran as %+v, want one failure and one success", run)
	}
}

// active is how many handlers run now.
func (r *faultRuns) active() (n int) {
	for _, run := range r.all() {
		n += run.active
	}
	return n
}

// P9: what is lost with the data of Redis is lost, but the workers go on: groups come back at 0, also when a foreign
// producer created the stream before them.
func TestWorkerSurvivesLostKeys(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(r *faultRig) [][]string{
		"FLUSHALL":       func(*faultRig) [][]string { return [][]string{{"FLUSHALL"}} },
		"DEL of queue":   func(r *faultRig) [][]string { return [][]string{{"DEL", r.keys.Queue}} },
		"DEL of retries": func(r *faultRig) [][]string { return [][]string{{"DEL", r.keys.Retry}} },
		"RENAME":         func(r *faultRig) [][]string { return [][]string{{"RENAME", r.keys.Queue, r.prefix + "aside"}} },
		"expiry":         func(r *faultRig) [][]string { return [][]string{{"PEXPIREAT", r.keys.Queue, "1"}} },
	} {
		for _, foreignFirst := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, foreign producer first: %v", name, foreignFirst), func(t *testing.T) {
				t.Parallel()
				rig := newFaultRig(t, redistest.Start(t, redistest.Options{}))
				opts := xstreamq.SubscribeOptions{VisibilityTimeout: 2 * time.Second, Backoff: faultQuick}
				a, q := rig.worker(opts, faultFlaky)
				rig.worker(opts, faultFlaky)
				rig.publish(q, "flaky-before")
				rig.handled([]string{"flaky-before"})
				for round := range 3 {
					bodies := []string{fmt.Sprintf("a-%d", round), fmt.Sprintf("b-%d", round), fmt.Sprintf("flaky-%d", round)}
					commands := lose(rig)
					if foreignFirst {
						for _, body := range bodies {
							commands = append(commands, []string{"XADD", rig.keys.Queue, "*", "body", `"` + body + `"`})
						}
					}
					rig.transaction(commands)
					if !foreignFirst {
						rig.publish(q, bodies...)
					}
					rig.handled(bodies)
				}
				rig.drained()
				rig.healthy(a)
				known := rig.do("HEXISTS", rig.keys.Registry, keys.Member(faultQueue, faultGroup))
				if n, err := known.AsInt64(); n != 1 {
					t.Errorf("the group is not in the registry (%v)", err)
				}
				if name == "FLUSHALL" {
					rig.calm(time.Second, "xreadgroup", 10)
				}
				if n := rig.log.count(); n > 30 {
					t.Errorf("%d lines were logged:\n%s", n, rig.log)
				}
			})
		}
	}
}

// P9: an idle worker whose reads a stranger ends with an error goes on reading.
func TestIdleWorkerUnblocked(t *testing.T) {
	t.Parallel()
	rig := newFaultRig(t, redistest.Start(t, redistest.Options{}))
	a, q := rig.worker(xstreamq.SubscribeOptions{Backoff: faultQuick}, faultFlaky)
	for round := range 3 {
		woken := 0
		redistest.WaitFor(t, faultPatience, "both reads woken", func() bool {
			woken += rig.unblockAll()
			return woken >= 2
		})
		body := fmt.Sprintf("flaky-%d", round)
		rig.publish(q, body)
		rig.handled([]string{body})
		rig.healthy(a)
	}
	rig.once()
	if !rig.log.has("UNBLOCKED") || rig.log.count() > 10 {
		t.Errorf("logged:\n%s", rig.log)
	}
}

// P9: while a lost group cannot be created again, nobody asks for it thousands of times a second.
func TestNoHotLoopWhileGroupCannotBeCreated(t *testing.T) {
	t.Parallel()
	rig := newFaultRig(t, redistest.Start(t, redistest.Options{}))
	a, q := rig.worker(xstreamq.SubscribeOptions{Backoff: faultQuick}, faultFlaky)
	rig.publish(q, "flaky-1")
	rig.handled([]string{"flaky-1"})
	rig.do("ACL", "SETUSER", "default", "-xgroup")
	rig.do("DEL", rig.keys.Queue, rig.keys.Retry)
	redistest.WaitFor(t, faultPatience, "a log line", func() bool { return rig.log.has("NOPERM") })
	const d = 3 * time.Second
	rig.calm(d, "xreadgroup", 20)
	if err := a.Healthy(t.Context()); err != nil {
		t.Logf("Healthy: %v", err)
	}
	rig.do("ACL", "SETUSER", "default", "+@all")
	rig.publish(q, "flaky-2")
	rig.handled([]string{"flaky-2"})
	rig.healthy(a)
	if n := rig.log.count(); n > 20 {
		t.Errorf("%d lines were logged:\n%s", n, rig.log)
	}
}

// P1, P5: a message whose next place is a key of the wrong type stays where it was. The error is named, others go on, and
// once the key is gone the message moves, once.
func TestPlaceOfWrongType(t *testing.T) {
	t.Parallel()
	failing := func(_ context.Context, m *xstreamq.Message[string]) error {
		if m.Body == "stuck" && m.Retries == 0 {
			return errors.New("no luck")
		}
		return nil
	}
	dlq := func(k keys.Set) string { return k.DLQ }
	retry := func(k keys.Set) string { return k.Retry }
	backoff := func(k keys.Set) string { return k.Backoff }
	dead := faultDead{`"stuck"`, "failed", "1", ""}
	noRetries := xstreamq.SubscribeOptions{MaxRetries: xstreamq.NoRetries}
	for _, tt := range []struct {
		name    string
		key     func(keys.Set) string
		full    bool // the stream has no ids left; else the key holds a string
		orphan  bool // the message was read by a worker that is gone
		opts    xstreamq.SubscribeOptions
		stays   string
		dead    faultDead
		retries int
		lost    int
	}{
		{name: "failed, dead-letter queue", key: dlq, opts: noRetries, stays: "queue (leased)", dead: dead},
		{name: "failed, dead-letter queue without ids", key: dlq, full: true, opts: noRetries, stays: "queue (leased)", dead: dead},
		{name: "failed, backoff", key: backoff, stays: "queue (leased)", retries: 1},
		{name: "backed off, retry stream", key: retry, stays: "backoff", retries: 1},
		{name: "lost, retry stream", key: retry, orphan: true, stays: "queue (leased)", retries: 1, lost: 1},
		{
			name: "lost, dead-letter queue", key: dlq, orphan: true, opts: xstreamq.SubscribeOptions{MaxLostLeases: xstreamq.NoRetries},
			stays: "queue (leased)", dead: faultDead{`"stuck"`, "lost-lease", "", "1"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rig := sharedFaultRig(t)
			tt.opts.VisibilityTimeout, tt.opts.Backoff = 2*time.Second, faultQuick
			c, q := rig.worker(tt.opts, failing)
			key := tt.key(rig.keys)
			says := []string{"XQTYPE", key, "holds a string"}
			if tt.full {
				rig.do("XADD", key, "18446744073709551615-18446744073709551615", "oid", "last")
				says = []string{"outcome cannot be written", "exhausted"}
			} else {
				rig.do("SET", key, "not ours")
			}
			var id string
			if tt.orphan {
				id = rig.orphan("stuck")
			} else {
				id = rig.publish(q, "stuck")[0]
			}
			redistest.WaitFor(t, faultPatience, "a log line that names the error", func() bool { return rig.log.has(says...) })
			for i := range 20 {
				rig.publish(q, fmt.Sprintf("other-%d", i))
			}
			for i := range 20 {
				rig.handled([]string{fmt.Sprintf("other-%d", i)})
			}
			rig.never(time.Second, "the message moved", func() bool {
				at := rig.places().at[id]
				return len(at) != 1 || at[0] != tt.stays
			})
			rig.do("DEL", key)
			if tt.dead != (faultDead{}) {
				redistest.WaitFor(t, faultPatience, "a dead letter", func() bool { return rig.places().dead[id] != (faultDead{}) })
				if got := rig.drained()[id]; got != tt.dead {
					t.Errorf("the dead letter is %+v, want %+v", got, tt.dead)
				}
			} else {
				rig.handled([]string{"stuck"})
				rig.drained()
			}
			run := rig.runs.get("stuck")
			if run.retries != tt.retries || run.lost != tt.lost || run.succeeded > 1 || run.begun > 1+tt.retries {
				t.Errorf("the message ran as %+v, want %d failures and %d lost leases", run, tt.retries, tt.lost)
			}
			if n := rig.log.count(); n > 20 {
				t.Errorf("%d lines were logged:\n%s", n, rig.log)
			}
			rig.healthy(c)
		})
	}
}

// orphan publishes a message that a consumer of another process reads before anybody else, and abandons. Its lease is short.
func (r *faultRig) orphan(body string) (id string) {
	r.t.Helper()
	// A transaction: no worker comes between.
	replies := r.transaction([][]string{
		{"XADD", r.keys.Queue, "*", "body", `"` + body + `"`},
		{"XREADGROUP", "GROUP", faultGroup, "gone~300", "STREAMS", r.keys.Queue, ">"},
	})
	id, err := replies[0].ToString()
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

// P9: Start says at once that a key is of the wrong type. A worker that runs already survives it.
func TestQueueOfWrongType(t *testing.T) {
	t.Parallel()
	rig := sharedFaultRig(t)
	running, q := rig.worker(xstreamq.SubscribeOptions{Backoff: faultQuick}, faultFlaky)
	rig.publish(q, "flaky-1")
	rig.handled([]string{"flaky-1"})
	rig.do("SET", rig.keys.Queue, "not ours")
	_, err := q.Publish(t.Context(), "refused")
	if err == nil || errors.Is(err, xstreamq.ErrPublishUncertain) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("Publish says %v, want WRONGTYPE", err)
	}
	late, other := rig.client()
	if _, err := other.Subscribe("late", faultFlaky, xstreamq.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), faultPatience)
	defer cancel()
	err = late.Start(ctx)
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), rig.keys.Queue) {
		t.Errorf("Start says %v, want at once WRONGTYPE and the key", err)
	}
	redistest.WaitFor(t, faultPatience, "a log line", func() bool { return rig.log.has("reader failed", "WRONGTYPE") })
	rig.do("DEL", rig.keys.Queue)
	rig.publish(q, "flaky-2")
	rig.handled([]string{"flaky-2"})
	rig.healthy(running)
}
