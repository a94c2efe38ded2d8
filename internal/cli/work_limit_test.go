package cli

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestStartLimit has many ask at once, some of whom cannot start: as many start as may, and the end comes once.
func TestStartLimit(t *testing.T) {
	t.Parallel()
	const most = 10
	var spent, started atomic.Int64
	l := &startLimit{most: most, spent: func() { spent.Add(1) }}
	var asking sync.WaitGroup
	for i := range 50 {
		asking.Go(func() {
			for started.Load() < most {
				switch {
				case !l.reserve():
					runtime.Gosched()
				case i%2 == 0:
					l.unused()
				default:
					started.Add(1)
					l.start()
				}
			}
		})
	}
	asking.Wait()
	if l.reserve() {
		t.Error("one more may start")
	}
	if started.Load() != most || spent.Load() != 1 {
		t.Errorf("%d started, the end came %d times; want %d, once", started.Load(), spent.Load(), most)
	}
	unlimited := &startLimit{spent: func() { t.Error("no limit was spent") }}
	for range 100 {
		if !unlimited.reserve() {
			t.Fatal("refused without a limit")
		}
		unlimited.start()
	}
}
