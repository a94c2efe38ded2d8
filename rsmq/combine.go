package rsmq

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	combineFlights = 2   // calls under way at once, per key
	combineMost    = 100 // calls that share one
)

// combiner lets calls with one key that come while others are under way share one of them. Redis then has less to do for each, and a call
// waits for nobody as long as fewer than combineFlights are under way.
type combiner[K comparable, T, R any] struct {
	// serve makes the call for several, and returns a result for each. ctx ends with that of the most patient caller, or later.
	serve func(ctx context.Context, key K, items []T) []outcome[R]
	// abandon, if set, gets a result whose caller does not wait any more.
	abandon func(key K, result R)

	mu    sync.Mutex
	lanes map[K]*lane[T, R] // those with something to do
}

// lane is the calls with one key.
type lane[T, R any] struct {
	waiting []*ticket[T, R]
	flights int
}

// ticket is one call.
type ticket[T, R any] struct {
	item  T
	until time.Time
	done  chan outcome[R] // one is sent, unless gone
	gone  bool            // its caller does not wait any more
}

type outcome[R any] struct {
	value R
	err   error
}

// do makes a call. It returns by the end of ctx, or within 5s when that has no deadline; the error is an unsentError if the call had not begun.
func (b *combiner[K, T, R]) do(ctx context.Context, key K, item T) (R, error) {
	var late <-chan time.Time
	until, ok := ctx.Deadline()
	if !ok {
		timer := time.NewTimer(commandTimeout)
		defer timer.Stop()
		late, until = timer.C, time.Now().Add(commandTimeout)
	}
	t := &ticket[T, R]{item: item, until: until, done: make(chan outcome[R], 1)}
	b.board(key, t)
	select {
	case o := <-t.done:
		return o.value, o.err
	case <-ctx.Done():
		return b.leave(key, t, context.Cause(ctx))
	case <-late:
		return b.leave(key, t, context.DeadlineExceeded)
	}
}

// board has a call wait for the next flight, and begins one if there may be one more.
func (b *combiner[K, T, R]) board(key K, t *ticket[T, R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lanes[key]
	if l == nil {
		l = &lane[T, R]{}
		if b.lanes == nil {
			b.lanes = map[K]*lane[T, R]{}
		}
		b.lanes[key] = l
	}
	l.waiting = append(l.waiting, t)
	if l.flights < combineFlights {
		l.flights++
		go b.fly(key, l, b.next(key, l))
	}
}

// leave gives up a call.
func (b *combiner[K, T, R]) leave(key K, t *ticket[T, R], why error) (none R, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case o := <-t.done: // it came all the same
		return o.value, o.err
	default:
	}
	t.gone = true
	l := b.lanes[key]
	if at := slices.Index(l.waiting, t); at >= 0 {
		l.waiting = slices.Delete(l.waiting, at, at+1)
		return none, &unsentError{why}
	}
	return none, why
}

// next takes those that wait. With none left the flight has ended. mu is held.
func (b *combiner[K, T, R]) next(key K, l *lane[T, R]) []*ticket[T, R] {
	n := min(len(l.waiting), combineMost)
	if n > 0 {
		page := slices.Clone(l.waiting[:n])
		l.waiting = slices.Delete(l.waiting, 0, n)
		return page
	}
	if l.flights--; l.flights == 0 {
		delete(b.lanes, key)
	}
	return nil
}

// fly serves a page after the other for as long as some wait.
func (b *combiner[K, T, R]) fly(key K, l *lane[T, R], page []*ticket[T, R]) {
	for len(page) > 0 {
		for _, o := range b.land(page, b.serveAll(key, page)) {
			b.abandon(key, o.value)
		}
		b.mu.Lock()
		page = b.next(key, l)
		b.mu.Unlock()
	}
}

func (b *combiner[K, T, R]) serveAll(key K, page []*ticket[T, R]) []outcome[R] {
	items := make([]T, len(page))
	until := time.Now().Add(commandTimeout) // for a late message to be given back
	for i, t := range page {
		items[i] = t.item
		until = later(until, t.until)
	}
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	return b.serve(ctx, key, items)
}

// land hands out results, and returns those that nobody waits for, if that matters.
func (b *combiner[K, T, R]) land(page []*ticket[T, R], results []outcome[R]) (unwanted []outcome[R]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, t := range page {
		switch {
		case !t.gone:
			t.done <- results[i]
		case b.abandon != nil && results[i].err == nil:
			unwanted = append(unwanted, results[i])
		}
	}
	return unwanted
}
