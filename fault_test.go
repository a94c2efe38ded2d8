package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

var faultQuick = xstreamq.Backoff{Initial: 20 * time.Millisecond, Max: 100 * time.Millisecond}

// P1, P9: kill -9 of Redis under load loses nothing that Publish said is stored, and spends nobody's lease.
func TestRedisKilledUnderLoad(t *testing.T) {
	t.Parallel()
	for policy, moment := range map[string]func(*testing.T){
		"always":   func(*testing.T) {}, // what was answered has been written
		"everysec": faultBetweenSyncs,
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			testKilledUnderLoad(t, policy, moment)
		})
	}
}

func testKilledUnderLoad(t *testing.T, policy string, moment func(*testing.T)) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	server := redistest.Start(t, redistest.Options{AOF: policy, Dir: faultFastDir(t)})
	rig := newFaultRig(t, server)
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 10 * time.Second, Backoff: faultQuick}
	a, q := rig.worker(opts, faultFlaky)
	rig.worker(opts, faultFlaky)
	load := rig.load(q, 4)
	const kills = 5
	for range kills {
		before, more := rig.runs.succeeded(), 100+rnd.IntN(400)
		redistest.WaitFor(t, faultPatience, "progress", func() bool { return rig.runs.succeeded() >= before+more })
		moment(t)
		server.Kill()
		if err := server.Restart(); err != nil {
			return
		}
	}
	stored := load.end()
	rig.handled(stored)
	if dead := rig.drained(); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	rig.once()
	rig.healthy(a)
	t.Logf("%d messages acknowledged, %d kills", len(stored), kills)
	if n := rig.log.count(); n > 100 {
		t.Errorf("%d lines were logged:\n%s", n, rig.log)
	}
}

// faultFastDir is a directory where a sync takes no time, if the machine has one.
func faultFastDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "xstreamq-fault-") //nolint:usetesting // that one lies on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// faultBetweenSyncs waits for the middle of a second. With everysec Redis syncs at the start of each, holds back writes
// meanwhile, and answers nevertheless: a kill just then loses what was confirmed, by the terms of everysec.
func faultBetweenSyncs(t *testing.T) {
	t.Helper()
	redistest.WaitFor(t, faultPatience, "the middle of a second", func() bool {
		ms := time.Now().Nanosecond() / int(time.Millisecond)
		return ms > 400 && ms < 900
	})
}

// P3, P5, P9: when Redis is away for longer than the lease, running handlers keep theirs, failures stay failures, and nobody
// runs twice.
func TestRedisAwayLongerThanLease(t *testing.T) {
	t.Parallel()
	const lease = 1500 * time.Millisecond
	for name, away := range map[string]func(r *faultRig, s *redistest.Server, p *redistest.Proxy, d time.Duration){
		"stopped": func(r *faultRig, s *redistest.Server, _ *redistest.Proxy, d time.Duration) {
			s.Pause()
			r.wait(d)
			s.Resume()
		},
		"killed": func(r *faultRig, s *redistest.Server, _ *redistest.Proxy, d time.Duration) {
			faultBetweenSyncs(r.t)
			s.Kill()
			r.wait(d)
			_ = s.Restart()
		},
		"out of reach": func(r *faultRig, _ *redistest.Server, p *redistest.Proxy, d time.Duration) {
			p.BlackHole()
			r.wait(d)
			p.Pass()
		},
	} {
		for _, d := range []time.Duration{2 * lease, 4 * lease} {
			t.Run(fmt.Sprintf("%s for %s", name, d), func(t *testing.T) {
				t.Parallel()
				server := redistest.Start(t, redistest.Options{AOF: "everysec", Dir: faultFastDir(t)})
				proxy := redistest.NewProxy(t, server.URL())
				rig := newFaultRig(t, server)
				rig.url = proxy.URL()
				gone, back := make(chan struct{}), make(chan struct{})
				comeBack := sync.OnceFunc(func() { close(back) })
				opts := xstreamq.SubscribeOptions{VisibilityTimeout: lease, Backoff: faultQuick, Concurrency: 5, Prefetch: -1}
				handle := faultAcross(gone, back)
				a, q := rig.worker(opts, handle)
				rig.worker(opts, handle)
				t.Cleanup(comeBack)
				bodies := []string{
					"long-1", "long-2", "long-3", "long-4", "late-fail-1", "late-fail-2", "early-1", "early-2", "early-fail-1", "early-fail-2",
				}
				rig.publish(q, bodies...)
				redistest.WaitFor(t, faultPatience, "all running", func() bool { return len(rig.runs.all()) == len(bodies) })

				close(gone)
				away(rig, server, proxy, d)
				twice := ""
				rig.never(2*lease, "a message ran twice, or lost its lease, after Redis came back", func() bool {
					if twice = faultTwice(rig); twice != "" {
						t.Log(twice)
					}
					return twice != ""
				})
				comeBack()

				rig.handled(bodies)
				if dead := rig.drained(); len(dead) > 0 {
					t.Errorf("dead letters: %v", dead)
				}
				for body, run := range rig.runs.all() {
					want := 0
					if strings.Contains(body, "fail") {
						want = 1
					}
					if run.lost > 0 || run.retries != want || run.begun != 1+want || run.most > 1 {
						t.Errorf("%s ran %d times, %d at once, with %d failures and %d lost leases; want %d failures and nothing lost",
							body, run.begun, run.most, run.retries, run.lost, want)
					}
				}
				rig.healthy(a)
			})
		}
	}
}

// faultAcross is a handler of messages that run while Redis is away: "early" ones return then, the others when it is back.
func faultAcross(gone, back <-chan struct{}) xstreamq.Handler[string] {
	return func(ctx context.Context, m *xstreamq.Message[string]) error {
		until := back
		if strings.HasPrefix(m.Body, "early") {
			until = gone
		}
		select {
		case <-until:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if strings.Contains(m.Body, "fail") && m.Retries == 0 {
			return errors.New("failed")
		}
		return nil
	}
}

// faultTwice names a message of faultAcross that was given to a handler once more than it failed.
func faultTwice(rig *faultRig) string {
	for body, run := range rig.runs.all() {
		if run.begun > 1 && !(strings.HasPrefix(body, "early-fail") && run.begun == 2 && run.retries == 1) || run.cause != nil || run.lost > 0 {
			return fmt.Sprintf("%s %+v", body, run)
		}
	}
	return ""
}

// P9: what an administrator or a neighbour does to a server costs no restart of a worker, and no message that Redis still has.
func TestWorkerHealsUnderLoad(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		rounds int
		fault  func(r *faultRig)
	}{
		{"script flush", 20, func(r *faultRig) { r.do("SCRIPT", "FLUSH") }},
		{"client kill", 20, func(r *faultRig) { _, _ = r.try("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes") }},
		{"unblocked", 20, func(r *faultRig) { r.unblockAll() }},
		{"clients paused", 2, func(r *faultRig) {
			r.do("CLIENT", "PAUSE", "1500", "ALL")
			r.do("PING")
			r.do("CLIENT", "PAUSE", "1500", "WRITE")
			r.do("XACK", "no-such-key", "g", "0-1") // waits for the end
		}},
		{"demoted", 3, func(r *faultRig) {
			r.do("REPLICAOF", "127.0.0.1", "1")
			r.wait(300 * time.Millisecond)
			r.do("REPLICAOF", "NO", "ONE")
		}},
		{"busy script", 3, func(r *faultRig) {
			other := redistest.Dial(r.t, r.url)
			go other.Do(context.Background(), other.B().Eval().Script("while true do end").Numkeys(0).Build())
			r.wait(500 * time.Millisecond)
			redistest.WaitFor(r.t, faultPatience, "the end of the script", func() bool {
				_, err := r.try("SCRIPT", "KILL")
				return err == nil
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{Args: []string{"--lua-time-limit", "100"}})
			rig := newFaultRig(t, server)
			opts := xstreamq.SubscribeOptions{VisibilityTimeout: 20 * time.Second, Backoff: faultQuick}
			a, q := rig.worker(opts, faultFlaky)
			b, _ := rig.worker(opts, faultFlaky)
			load := rig.load(q, 4)
			for range tt.rounds {
				before := rig.runs.succeeded()
				redistest.WaitFor(t, faultPatience, "progress", func() bool { return rig.runs.succeeded() >= before+100 })
				tt.fault(rig)
			}
			stored := load.end()
			rig.handled(stored)
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
