package batch

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	testSize  = 3
	testCrowd = 2
	testDelay = time.Millisecond
)

// flushed is one call of the flush function.
type flushed struct {
	After time.Duration // since the start of the test
	Items []int
}

// recorder is a flush function that remembers its calls. It takes took, as the real one waits for a server.
type recorder struct {
	start time.Time
	took  time.Duration

	mu      sync.Mutex
	calls   []flushed
	running bool
	overlap bool
}

func newRecorder(took time.Duration) *recorder { return &recorder{start: time.Now(), took: took} }

func (r *recorder) flush(items []int) {
	r.mu.Lock()
	r.overlap = r.overlap || r.running
	r.running = true
	r.calls = append(r.calls, flushed{time.Since(r.start), slices.Clone(items)})
	r.mu.Unlock()
	time.Sleep(r.took)
	r.mu.Lock()
	r.running = false
	r.mu.Unlock()
}

func (r *recorder) want(t *testing.T, want ...flushed) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.calls); diff != "" {
		t.Errorf("flushes: -want +got:\n%s", diff)
	}
	if r.overlap {
		t.Error("two flushes ran at once")
	}
}

func add(t *testing.T, b *Batch[int], items ...int) {
	t.Helper()
	for _, i := range items {
		if !b.Add(i) {
			t.Errorf("Add(%d) is refused", i)
		}
	}
}

// crowded returns a batch that flushes [1], then [2 3], a crowd, with item 4 waiting behind. Each flush takes 10 delays; the
// second one ends after 20.
func crowded(t *testing.T, delay time.Duration) (*Batch[int], *recorder) {
	t.Helper()
	r := newRecorder(10 * testDelay)
	b := New(testSize, testCrowd, delay, r.flush)
	add(t, b, 1)
	synctest.Wait() // the first flush runs
	add(t, b, 2, 3)
	time.Sleep(15 * testDelay) // the second one
	add(t, b, 4)
	return b, r
}

var crowdedFlushes = []flushed{{0, []int{1}}, {10 * testDelay, []int{2, 3}}}

func TestFewAreFlushedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(0)
		b := New(testSize, testCrowd, testDelay, r.flush)
		defer b.Close()
		time.Sleep(5 * testDelay) // an idle batch flushes nothing
		add(t, b, 1)
		synctest.Wait()
		r.want(t, flushed{5 * testDelay, []int{1}})
		time.Sleep(testDelay / 10)
		add(t, b, 2)
		synctest.Wait()
		r.want(t, flushed{5 * testDelay, []int{1}}, flushed{5*testDelay + testDelay/10, []int{2}})
	})
}

func TestAfterACrowdOthersAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := crowded(t, testDelay)
		defer b.Close()
		time.Sleep(5*testDelay + testDelay*9/10)
		add(t, b, 5)
		synctest.Wait()
		r.want(t, crowdedFlushes...)
		time.Sleep(testDelay)
		r.want(t, append(crowdedFlushes, flushed{21 * testDelay, []int{4, 5}})...)
	})
}

func TestACrowdThatIsOverHoldsUpOneItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := crowded(t, testDelay)
		defer b.Close()
		time.Sleep(30 * testDelay)
		add(t, b, 5)
		synctest.Wait()
		r.want(t, append(crowdedFlushes, flushed{21 * testDelay, []int{4}}, flushed{45 * testDelay, []int{5}})...)
	})
}

func TestFullBatchIsFlushedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := crowded(t, time.Hour)
		defer b.Close()
		time.Sleep(10 * testDelay)
		add(t, b, 5)
		synctest.Wait()
		r.want(t, crowdedFlushes...)
		add(t, b, 6)
		synctest.Wait()
		r.want(t, append(crowdedFlushes, flushed{25 * testDelay, []int{4, 5, 6}})...)
	})
}

func TestItemsDuringAFlushMakeTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := crowded(t, time.Hour)
		defer b.Close()
		add(t, b, 5, 6, 7)
		time.Sleep(10 * testDelay)
		r.want(t, append(crowdedFlushes, flushed{20 * testDelay, []int{4, 5, 6, 7}})...)
	})
}

func TestCloseFlushesWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := crowded(t, time.Hour)
		time.Sleep(10 * testDelay) // 4 waits
		b.Close()
		r.want(t, append(crowdedFlushes, flushed{25 * testDelay, []int{4}})...)
		if got := time.Since(r.start); got != 35*testDelay {
			t.Errorf("Close returned after %v; the flush takes %v", got, 10*testDelay)
		}
		if b.Add(5) {
			t.Error("Add after Close took the item")
		}
		b.Close()
		r.want(t, append(crowdedFlushes, flushed{25 * testDelay, []int{4}})...)
	})
}

func TestCloseOfAnEmptyBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(0)
		b := New(testSize, testCrowd, testDelay, r.flush)
		b.Close()
		r.want(t)
	})
}

func TestCloseWaitsForARunningFlushAndForWhatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(10 * testDelay)
		b := New(testSize, testCrowd, time.Hour, r.flush)
		add(t, b, 1)
		synctest.Wait()
		add(t, b, 2)
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(b.Close)
		}
		closers.Wait()
		r.want(t, flushed{0, []int{1}}, flushed{10 * testDelay, []int{2}})
	})
}

// Every item that Add took is flushed once, in order of its adder.
func TestConcurrentAddersLoseNothing(t *testing.T) {
	t.Parallel()
	const adders, each = 8, 2000
	var got [adders][]int // written by one flush at a time, read after Close
	b := New(64, 8, 100*time.Microsecond, func(items [][2]int) {
		for _, item := range items {
			got[item[0]] = append(got[item[0]], item[1])
		}
	})
	taken := make([]int, adders)
	var wg sync.WaitGroup
	for adder := range adders {
		wg.Go(func() {
			for i := range each {
				if !b.Add([2]int{adder, i}) {
					return
				}
				taken[adder]++
				if adder == 0 && i == each/2 {
					go b.Close() // while others add
				}
			}
		})
	}
	wg.Wait()
	b.Close()
	for adder := range adders {
		want := make([]int, taken[adder])
		for i := range want {
			want[i] = i
		}
		if !slices.Equal(got[adder], want) {
			t.Errorf("adder %d: %d items taken, %d flushed, or in another order", adder, taken[adder], len(got[adder]))
		}
	}
}
