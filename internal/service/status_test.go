package service

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// health is what a health check reads off a status.
type health struct{ running, alive, fresh, waiting bool }

func (l *Loop) health() health {
	s := l.Status()
	return health{s.Running, s.Alive, s.Fresh, s.Waiting}
}

func wantHealth(t *testing.T, when string, l *Loop, want health) {
	t.Helper()
	if got := l.health(); got != want {
		t.Errorf("%s: %+v, want %+v", when, got, want)
	}
}

var (
	well    = health{running: true, alive: true, fresh: true}
	failing = health{running: true, alive: true}
	stuck   = health{running: true}
)

func TestStatusOfALoopThatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Name: "promoter", Step: every(time.Second).step, Quiet: 5 * time.Second})
		wantHealth(t, "before Start", l, health{})
		if l.Status().Name != "promoter" {
			t.Errorf("it is called %q", l.Status().Name)
		}
		l.Start(t.Context())
		wantHealth(t, "at Start", l, well)
		time.Sleep(time.Hour)
		synctest.Wait()
		wantHealth(t, "later", l, well)
		if s := l.Status(); time.Since(s.Progress) > time.Second || s.Tried != s.Progress {
			t.Errorf("progress %v ago, tried %v ago", time.Since(s.Progress), time.Since(s.Tried))
		}
		if err := l.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		wantHealth(t, "after Stop", l, health{})
	})
}

func TestStatusOfALoopThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		var heal atomic.Bool
		s := &steps{result: func(int) (time.Duration, error) {
			if heal.Load() {
				return time.Second, nil
			}
			return 0, errStep
		}}
		l := start(t, Options{Step: s.step, Quiet: 5 * time.Second})
		time.Sleep(5 * time.Second)
		wantHealth(t, "as long as Quiet", l, well)
		if !errors.Is(l.Status().Err, errStep) {
			t.Errorf("error %v", l.Status().Err)
		}
		time.Sleep(time.Millisecond)
		wantHealth(t, "for longer", l, failing)
		if s := l.Status(); !s.Progress.Equal(begun) || time.Since(s.Tried) > time.Second {
			t.Errorf("progress %v ago, tried %v ago", time.Since(s.Progress), time.Since(s.Tried))
		}
		heal.Store(true)
		time.Sleep(2 * time.Second)
		wantHealth(t, "healed", l, well)
		if l.Status().Err != nil {
			t.Errorf("error %v", l.Status().Err)
		}
	})
}

func TestStatusOfALoopThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := start(t, Options{Step: func(ctx context.Context) (time.Duration, error) {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return time.Second, nil
		}})
		time.Sleep(15 * time.Second)
		wantHealth(t, "as long as the default of Quiet", l, well)
		time.Sleep(time.Millisecond)
		wantHealth(t, "for longer", l, stuck)

		l.SetWaiting(true)
		wantHealth(t, "waiting for something else", l, health{true, true, true, true})
		time.Sleep(time.Hour)
		wantHealth(t, "for an hour", l, health{true, true, true, true})
		l.SetWaiting(false)
		wantHealth(t, "no longer", l, well)
		time.Sleep(16 * time.Second)
		wantHealth(t, "hanging by its own fault", l, stuck)

		close(release)
		synctest.Wait()
		wantHealth(t, "free again", l, well)
	})
}

func TestALoopThatEndedIsNotWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Step: every(time.Hour).step})
		l.Start(t.Context())
		l.SetWaiting(true)
		if err := l.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if got := l.health(); got.running || got.alive || got.fresh {
			t.Errorf("%+v", got)
		}
	})
}
