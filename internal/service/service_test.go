package service

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errStep = errors.New("step failed")

// steps is a step that remembers when it ran and does as it is told.
type steps struct {
	mu     sync.Mutex
	at     []time.Time
	result func(n int) (time.Duration, error) // n counts from 1
}

func (s *steps) step(context.Context) (time.Duration, error) {
	s.mu.Lock()
	s.at = append(s.at, time.Now())
	n := len(s.at)
	s.mu.Unlock()
	return s.result(n)
}

func (s *steps) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// gaps are the times between one step and the next.
func (s *steps) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(s.at); i++ {
		gaps = append(gaps, s.at[i].Sub(s.at[i-1]))
	}
	return gaps
}

func every(wait time.Duration) *steps {
	return &steps{result: func(int) (time.Duration, error) { return wait, nil }}
}

// start starts a loop and stops it at the end of the test.
func start(t *testing.T, opts Options) *Loop {
	t.Helper()
	l := New(opts)
	l.Start(t.Context())
	t.Cleanup(func() {
		if err := l.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// within reports whether a wait is what was asked for, less at most a tenth.
func within(got, want time.Duration) bool { return got <= want && got >= want-want/10 }

func TestWaitsAsLongAsTheStepSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := every(time.Second)
		start(t, Options{Step: s.step})
		time.Sleep(100 * time.Second)
		different := map[time.Duration]bool{}
		for _, gap := range s.gaps() {
			different[gap] = true
			if !within(gap, time.Second) {
				t.Errorf("a wait of %v, want at most a tenth less than 1s, and never more", gap)
			}
		}
		if n := len(s.gaps()); n < 99 || n > 112 || len(different) < n/2 {
			t.Errorf("%d waits, %d different ones", n, len(different))
		}
	})
}

func TestNoWaitMeansAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{result: func(n int) (time.Duration, error) {
			if n < 5 {
				return time.Duration(-n % 2), nil // 0 or negative
			}
			return time.Hour, nil
		}}
		start(t, Options{Step: s.step})
		synctest.Wait()
		if s.count() != 5 {
			t.Errorf("%d steps", s.count())
		}
	})
}

func TestBacksOffFromErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{result: func(n int) (time.Duration, error) {
			if n == 10 {
				return time.Minute, nil
			}
			return 0, errStep // its wait does not count
		}}
		start(t, Options{Step: s.step})
		time.Sleep(2 * time.Minute)
		ms := time.Millisecond
		want := []time.Duration{50 * ms, 100 * ms, 200 * ms, 400 * ms, 800 * ms, time.Second, time.Second, time.Second, time.Second, // grows to a cap
			time.Minute,                 // a success ends it
			50 * ms, 100 * ms, 200 * ms} // and it begins anew
		gaps := s.gaps()
		if len(gaps) < len(want) {
			t.Fatalf("%d steps", len(gaps)+1)
		}
		for i, w := range want {
			if !within(gaps[i], w) {
				t.Errorf("wait %d is %v, want about %v", i+1, gaps[i], w)
			}
		}
	})
}

func TestSurvivesPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{result: func(n int) (time.Duration, error) {
			if n <= 2 {
				panic("no such order")
			}
			return time.Hour, nil
		}}
		var seen []error
		l := start(t, Options{Name: "reaper", Step: s.step, OnError: func(err error) { seen = append(seen, err) }})
		synctest.Wait()
		if st := l.Status(); !st.Running || st.Err == nil {
			t.Errorf("after a panic: %+v", st)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if s.count() != 3 || len(seen) != 2 {
			t.Errorf("%d steps, %d errors", s.count(), len(seen))
		}
		for _, part := range []string{"reaper", "no such order", "service_test.go"} {
			if !strings.Contains(seen[0].Error(), part) {
				t.Errorf("the error does not tell %q: %.200s", part, seen[0])
			}
		}
		if st := l.Status(); st.Err != nil || !st.Fresh {
			t.Errorf("after the next step: %+v", st)
		}
	})
}

func TestWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := every(time.Hour)
		l := start(t, Options{Step: s.step})
		synctest.Wait()
		l.Wake()
		synctest.Wait()
		if s.count() != 2 {
			t.Errorf("%d steps after Wake", s.count())
		}
		time.Sleep(time.Minute)
		if s.count() != 2 {
			t.Errorf("one Wake made %d steps", s.count()-1)
		}
	})
}

// A Wake is never lost: what comes during a step ends the wait after it. Many are one.
func TestWakeDuringAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &steps{result: func(int) (time.Duration, error) {
			time.Sleep(time.Second)
			return time.Hour, nil
		}}
		l := start(t, Options{Step: s.step})
		time.Sleep(time.Second / 2)
		for range 5 {
			l.Wake()
		}
		time.Sleep(time.Minute)
		if s.count() != 2 {
			t.Errorf("%d steps, want 2", s.count())
		}
	})
}

func TestWakeBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := every(time.Hour)
		l := New(Options{Step: s.step})
		l.Wake()
		synctest.Wait()
		if s.count() != 0 {
			t.Error("Wake started the loop")
		}
		l.Halt()
	})
}

func TestTimeoutBoundsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var took time.Duration
		l := start(t, Options{Timeout: 3 * time.Second, Step: func(ctx context.Context) (time.Duration, error) {
			if took > 0 {
				return time.Hour, nil
			}
			<-ctx.Done()
			took = time.Since(began)
			return 0, ctx.Err()
		}})
		time.Sleep(3*time.Second + time.Millisecond)
		synctest.Wait()
		if took != 3*time.Second || !errors.Is(l.Status().Err, context.DeadlineExceeded) {
			t.Errorf("took %v, error %v", took, l.Status().Err)
		}
		time.Sleep(time.Second)
		if l.Status().Err != nil {
			t.Error("the loop did not go on")
		}
	})
}

func TestWithoutTimeoutAStepHasNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start(t, Options{Step: func(ctx context.Context) (time.Duration, error) {
			if _, ok := ctx.Deadline(); ok {
				t.Error("the step has a deadline")
			}
			return time.Hour, nil
		}})
		synctest.Wait()
	})
}

func TestStopEndsAStepAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		reported := false
		l := New(Options{OnError: func(error) { reported = true }, Step: func(ctx context.Context) (time.Duration, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // what it still has to do
			return 0, ctx.Err()
		}})
		l.Start(t.Context())
		synctest.Wait()
		if err := l.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("Stop returned after %v", took)
		}
		if st := l.Status(); st.Running || st.Alive || st.Fresh || reported {
			t.Errorf("after Stop: %+v, error reported: %v", st, reported)
		}
		if err := l.Stop(t.Context()); err != nil {
			t.Errorf("the second Stop: %v", err)
		}
	})
}

func TestStopEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Step: every(time.Hour).step})
		l.Start(t.Context())
		synctest.Wait()
		began := time.Now()
		if err := l.Stop(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestStopReturnsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := New(Options{Name: "sweeper", Step: func(context.Context) (time.Duration, error) {
			<-release
			return 0, nil
		}})
		l.Start(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Stop(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "sweeper") {
			t.Errorf("error %v", err)
		}
		if !l.Status().Running {
			t.Error("the loop counts as ended while its step runs")
		}
		close(release)
		if err := l.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestHaltBeforeStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := every(time.Second)
		l := New(Options{Step: s.step})
		if err := l.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		l.Start(t.Context())
		time.Sleep(time.Minute)
		if s.count() != 0 || l.Status().Running {
			t.Errorf("%d steps after Halt", s.count())
		}
		if err := l.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestStartTwiceIsOneLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := every(time.Hour)
		l := start(t, Options{Step: s.step})
		l.Start(t.Context())
		synctest.Wait()
		if s.count() != 1 {
			t.Errorf("%d steps", s.count())
		}
	})
}

func TestEndsWithTheContextOfStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := New(Options{Step: every(time.Hour).step})
		l.Start(ctx)
		synctest.Wait()
		cancel()
		if err := l.Wait(t.Context()); err != nil || l.Status().Running {
			t.Errorf("%v, %+v", err, l.Status())
		}
	})
}

// A step that ends its goroutine ends the loop, and the loop says so.
func TestGoexitIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Step: func(context.Context) (time.Duration, error) {
			runtime.Goexit()
			return 0, nil
		}})
		l.Start(t.Context())
		if err := l.Wait(t.Context()); err != nil || l.Status().Running {
			t.Errorf("%v, %+v", err, l.Status())
		}
	})
}

// Racing calls neither hang nor start a second loop.
func TestRacingStartsAndStops(t *testing.T) {
	t.Parallel()
	for range 200 {
		var mu sync.Mutex
		inside, most := 0, 0
		l := New(Options{Step: func(context.Context) (time.Duration, error) {
			mu.Lock()
			inside++
			most = max(most, inside)
			mu.Unlock()
			runtime.Gosched()
			mu.Lock()
			inside--
			mu.Unlock()
			return time.Microsecond, nil
		}})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { l.Start(t.Context()) })
			wg.Go(l.Wake)
			wg.Go(func() { l.SetWaiting(true) })
			wg.Go(func() { _ = l.Status() })
			wg.Go(func() {
				if err := l.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if err := l.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if most > 1 || inside != 0 || l.Status().Running {
			t.Fatalf("%d steps at once, %d left, %+v", most, inside, l.Status())
		}
	}
}
