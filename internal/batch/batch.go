// Package batch collects single items into batches.
package batch

import (
	"sync"
	"time"
)

// Batch hands what was added to one flush function. Flushes follow one another, so items that come meanwhile make the next batch. As
// long as few come it is flushed at once; when the flush before had crowd items or more, once size items are there, or delay
// after the first: then many share a flush, and one more would cost more than it brings.
type Batch[T any] struct {
	size  int
	crowd int
	delay time.Duration
	flush func([]T)

	some chan struct{} // there is at least one item
	full chan struct{} // there are size items
	quit chan struct{}
	done chan struct{}

	mu    sync.Mutex
	items []T
	spare []T
	shut  bool
}

// New starts a batch; Close ends it. flush must not keep the slice.
func New[T any](size, crowd int, delay time.Duration, flush func([]T)) *Batch[T] {
	b := &Batch[T]{
		size: size, crowd: crowd, delay: delay, flush: flush,
		some: make(chan struct{}, 1),
		full: make(chan struct{}, 1),
		quit: make(chan struct{}),
		done: make(chan struct{}),
	}
	go b.run()
	return b
}

// Add adds an item. It never blocks. After Close it returns false and the item was not taken.
func (b *Batch[T]) Add(item T) bool {
	b.mu.Lock()
	if b.shut {
		b.mu.Unlock()
		return false
	}
	b.items = append(b.items, item)
	n := len(b.items)
	b.mu.Unlock()
	if n == 1 {
		signal(b.some)
	}
	if n == b.size {
		signal(b.full)
	}
	return true
}

// Close flushes what is there and waits for it. Safe twice.
func (b *Batch[T]) Close() {
	b.mu.Lock()
	first := !b.shut
	b.shut = true
	b.mu.Unlock()
	if first {
		close(b.quit)
	}
	<-b.done
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (b *Batch[T]) run() {
	defer close(b.done)
	timer := time.NewTimer(b.delay)
	timer.Stop()
	flushed := 0
	for {
		select {
		case <-b.some:
		case <-b.quit:
			b.flushOnce()
			return
		}
		if flushed >= b.crowd {
			timer.Reset(b.delay)
			select {
			case <-timer.C:
			case <-b.full:
			case <-b.quit:
			}
		}
		flushed = b.flushOnce()
	}
}

// flushOnce flushes what is there, and returns how many that were.
func (b *Batch[T]) flushOnce() int {
	b.mu.Lock()
	items := b.items
	b.items = b.spare[:0]
	b.mu.Unlock()
	if len(items) > 0 {
		b.flush(items)
		clear(items)
	}
	b.spare = items
	return len(items)
}
