package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The canary's messages are handled: the rest follows, and not before.
func TestCanaryPasses(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 100)
	hold := make(chan struct{})
	var runs leaseRuns
	r.start(xstreamq.Config{}, xstreamq.SubscribeOptions{Backoff: xstreamq.Backoff{Initial: 10 * time.Millisecond}},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			n := runs.add(m)
			if runs.bodies() <= 3 && n == 1 {
				return errors.New("once more")
			}
			if m.Body == `{"n":2}` {
				<-hold
			}
			return nil
		})
	type answer struct {
		result xstreamq.RedriveResult
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		result, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Canary: 3})
		answered <- answer{result, err}
	}()
	redistest.WaitFor(t, leasePatience, "two of three handled", func() bool {
		places := r.places()
		return len(runs.of(`{"n":2}`)) == 2 && len(places["1-1"]) == 0 && len(places["3-1"]) == 0
	})
	if left := r.len(r.keys.DLQ); left != 97 || len(answered) > 0 {
		t.Errorf("%d are still dead while the canary is handled", left)
	}
	close(hold)
	a := leaseTake(t, answered, "the end of RedriveAll")
	if diff := cmp.Diff(deadSteps(1, 100, 1), a.result.Redriven); diff != "" || a.err != nil {
		t.Errorf("%v, -want +got:\n%s", a.err, diff)
	}
	redistest.WaitFor(t, leasePatience, "everything finished", func() bool { return runs.bodies() == 100 && len(r.places()) == 0 })
}

// One of them is dead again: the rest stays, and the error says which and why.
func TestCanaryDiesAgain(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 100)
	r.start(xstreamq.Config{}, xstreamq.SubscribeOptions{MaxRetries: 2, Backoff: xstreamq.Backoff{Initial: 10 * time.Millisecond}},
		func(_ context.Context, m *xstreamq.Message[string]) error {
			if m.Body == `{"n":2}` {
				return errors.New("still \x1b[31mbroken")
			}
			return nil
		})
	got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Canary: 5})
	if !errors.Is(err, xstreamq.ErrCanary) || !strings.Contains(err.Error(), "2-1") || !strings.Contains(err.Error(), `failed, "still \x1b[31mbroken"`) {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(xstreamq.RedriveResult{Redriven: deadSteps(1, 5, 1)}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if left := r.len(r.keys.DLQ); left != 96 {
		t.Errorf("%d dead letters, want those 95 that stay and the one that is dead again", left)
	}
}

// Nobody handles them: the time runs out, and the error asks for a worker. The end of the context ends the watch too.
func TestCanaryUndecided(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 100)
	got, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Canary: 5, CanaryTimeout: 50 * time.Millisecond})
	if !errors.Is(err, xstreamq.ErrCanary) || !strings.Contains(err.Error(), "5 of its 5 messages") || !strings.Contains(err.Error(), "worker") {
		t.Errorf("the error is %v", err)
	}
	if left := r.len(r.keys.DLQ); left != 95 || len(got.Redriven) != 5 {
		t.Errorf("%d dead letters are left, %d redriven", left, len(got.Redriven))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	got, err = r.client.RedriveAll(ctx, "q", "g", xstreamq.RedriveAllOptions{Canary: 5})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, xstreamq.ErrCanary) {
		t.Errorf("the error is %v", err)
	}
	if left := r.len(r.keys.DLQ); left != 90 || len(got.Redriven) != 5 {
		t.Errorf("%d dead letters are left, %d redriven", left, len(got.Redriven))
	}
}

// Where there are fewer than the canary asks for, or a limit allows no more, they are all, and nobody waits for a worker.
func TestCanaryOfAll(t *testing.T) {
	t.Parallel()
	r := newDeadRig(t)
	r.bury(1, 10)
	for _, o := range []xstreamq.RedriveAllOptions{{Canary: 5, Limit: 3}, {Canary: 50}} {
		if _, err := r.client.RedriveAll(t.Context(), "q", "g", o); err != nil {
			t.Error(err)
		}
	}
	if moved, left := r.len(r.keys.Retry), r.len(r.keys.DLQ); moved != 10 || left != 0 {
		t.Errorf("%d moved, %d left", moved, left)
	}
	_, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{
		Canary: 1, RedriveOptions: xstreamq.RedriveOptions{ToQueue: true},
	})
	if !errors.Is(err, xstreamq.ErrInvalidConfig) || !strings.Contains(err.Error(), "ToQueue") {
		t.Errorf("with ToQueue: %v", err)
	}
}

// Messages that move all the time, between the retry stream and a long backoff set, are not taken for finished while they live.
func TestCanaryLosesNobodyFromSight(t *testing.T) {
	t.Parallel()
	for round := range 3 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			r := newDeadRig(t)
			const canaries, tries = 20, 40
			r.bury(1, canaries+1)
			deadCrowd(r)
			var alive atomic.Int32
			alive.Store(canaries)
			r.start(xstreamq.Config{}, xstreamq.SubscribeOptions{Concurrency: 20, MaxRetries: 2 * tries}, func(_ context.Context, m *xstreamq.Message[string]) error {
				if m.Body == "crowd" {
					return nil
				}
				if m.Retries < tries {
					return xstreamq.RetryAfter(time.Duration(m.Retries%7)*time.Millisecond, errors.New("not yet"))
				}
				alive.Add(-1)
				return nil
			})
			stopped := deadTraffic(r)
			_, err := r.client.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Canary: canaries, CanaryTimeout: leasePatience})
			left := alive.Load()
			stopped()
			if err != nil {
				t.Error(err)
			}
			if left > 0 { // the last one, which followed, may have been handled as well
				t.Errorf("RedriveAll went on while %d of %d were alive", left, canaries)
			}
		})
	}
}

// deadCrowd fills the backoff set with messages that are due in hours, and some that are due soon.
func deadCrowd(r *deadRig) {
	now := r.now().UnixMilli()
	var cmds rueidis.Commands
	for i := range 3000 {
		due := now + 3_600_000 + int64(i)
		if i%10 == 0 {
			due = now + int64(i)
		}
		id := fmt.Sprintf("90%d-1", i)
		cmds = append(cmds, r.redis.B().Zadd().Key(r.keys.Backoff).ScoreMember().
			ScoreMember(float64(due), fmt.Sprintf("%s\x004:body5:crowd3:oid%d:%s", id, len(id), id)).Build())
	}
	r.send(cmds)
}

// deadTraffic puts other messages on the retry stream until it is stopped.
func deadTraffic(r *deadRig) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			id := fmt.Sprintf("80%d-1", i)
			r.redis.Do(ctx, r.redis.B().Arbitrary("XADD").Keys(r.keys.Retry).Args("*", "body", "crowd", "oid", id).Build())
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}
