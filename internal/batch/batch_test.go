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

func TestFullBatchIsFlushedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(0)
		b := New(testSize, testDelay, r.flush)
		defer b.Close()
		add(t, b, 1, 2, 3)
		synctest.Wait()
		r.want(t, flushed{0, []int{1, 2, 3}})

		time.Sleep(10 * testDelay)
		add(t, b, 4, 5, 6)
		synctest.Wait()
		r.want(t, flushed{0, []int{1, 2, 3}}, flushed{10 * testDelay, []int{4, 5, 6}})
	})
}

func TestDelayCountsFromTheFirstItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(0)
		b := New(testSize, testDelay, r.flush)
		defer b.Close()
		time.Sleep(5 * testDelay) // an idle batch flushes nothing
		add(t, b, 1)
		time.Sleep(testDelay * 9 / 10)
		add(t, b, 2)
		synctest.Wait()
		r.want(t)

		time.Sleep(testDelay)
		r.want(t, flushed{6 * testDelay, []int{1, 2}})
		time.Sleep(10 * testDelay)
		r.want(t, flushed{6 * testDelay, []int{1, 2}})
	})
}

func TestItemsDuringAFlushMakeTheNextBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(10 * testDelay)
		b := New(testSize, testDelay, r.flush)
		add(t, b, 1, 2, 3)
		synctest.Wait() // the first flush runs
		add(t, b, 4, 5, 6, 7)
		time.Sleep(15 * testDelay) // the second one too, full when it began
		add(t, b, 8)
		time.Sleep(30 * testDelay) // the third one, after its delay
		b.Close()
		r.want(t,
			flushed{0, []int{1, 2, 3}},
			flushed{10 * testDelay, []int{4, 5, 6, 7}},
			flushed{21 * testDelay, []int{8}})
	})
}

func TestCloseFlushesWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(10 * testDelay)
		b := New(testSize, time.Hour, r.flush)
		add(t, b, 1, 2)
		b.Close()
		r.want(t, flushed{0, []int{1, 2}})
		if got := time.Since(r.start); got != 10*testDelay {
			t.Errorf("Close returned after %v; the flush takes %v", got, 10*testDelay)
		}
		if b.Add(3) {
			t.Error("Add after Close took the item")
		}
		b.Close()
		r.want(t, flushed{0, []int{1, 2}})
	})
}

func TestCloseOfAnEmptyBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(0)
		b := New(testSize, testDelay, r.flush)
		b.Close()
		r.want(t)
	})
}

func TestCloseWaitsForARunningFlushAndForWhatCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(10 * testDelay)
		b := New(testSize, time.Hour, r.flush)
		add(t, b, 1, 2, 3)
		synctest.Wait()
		add(t, b, 4)
		var closers sync.WaitGroup
		for range 3 {
			closers.Go(b.Close)
		}
		closers.Wait()
		r.want(t, flushed{0, []int{1, 2, 3}}, flushed{10 * testDelay, []int{4}})
	})
}

// Every item that Add took is flushed once, in order of its adder.
func TestConcurrentAddersLoseNothing(t *testing.T) {
	t.Parallel()
	const adders, each = 8, 2000
	var got [adders][]int // written by one flush at a time, read after Close
	b := New(64, 100*time.Microsecond, func(items [][2]int) {
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
