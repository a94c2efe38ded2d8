package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// bodies collects the bodies that a group handled.
type bodies struct {
	mu  sync.Mutex
	got []string
}

func (b *bodies) handle(_ context.Context, m *xstreamq.Message[[]byte]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, string(m.Body))
	return nil
}

func (b *bodies) sorted() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.got))
}

// numbered returns count bodies "name-000", "name-001", and so on.
func numbered(name string, count int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%03d", name, i)
	}
	return out
}

func (r *foreignRig) publishAll(bodies []string) {
	r.t.Helper()
	for _, b := range bodies {
		r.publish(b)
	}
}

func checkBodies(t *testing.T, group string, got *bodies, want ...[]string) {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(slices.Concat(want...))), got.sorted()); diff != "" {
		t.Errorf("%s handled (-want +got):\n%.2000s", group, diff)
	}
}

// Fan-out (P1): every group gets every message, immediate or delayed, and what fails in one is retried and dead in that one alone.
func TestFanOutToGroups(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	quick := xstreamq.SubscribeOptions{MaxRetries: 1, Backoff: xstreamq.Backoff{Initial: time.Millisecond}}
	var well, flaky, broken bodies
	var attempts foreignInbox
	r.subscribe("well", well.handle, quick)
	r.subscribe("flaky", func(ctx context.Context, m *xstreamq.Message[[]byte]) error {
		if m.Retries == 0 {
			return errors.New("once more")
		}
		return flaky.handle(ctx, m)
	}, quick)
	r.subscribe("broken", func(ctx context.Context, m *xstreamq.Message[[]byte]) error {
		attempts.add(m.Delivery)
		return errors.Join(broken.handle(ctx, m), errors.New("never"))
	}, quick)
	r.start()
	now, later := numbered("now", 100), numbered("later", 20)
	r.publishAll(now)
	for _, b := range later {
		r.publish(b, xstreamq.WithDelay(50*time.Millisecond))
	}
	for _, group := range []string{"well", "flaky", "broken"} {
		r.waitEnded(group)
	}
	r.stop()
	checkBodies(t, "well", &well, now, later)
	checkBodies(t, "flaky", &flaky, now, later)
	checkBodies(t, "broken", &broken, now, later, now, later) // twice each
	for _, group := range []struct {
		name string
		dead int64
	}{{"well", 0}, {"flaky", 0}, {"broken", 120}} {
		if n := r.len("." + group.name + ".dlq"); n != group.dead {
			t.Errorf("%s has %d dead letters, want %d", group.name, n, group.dead)
		}
	}
}

// Several queues in one client, of several types, each with the same group name: nothing crosses over.
func TestSeveralQueuesInOneClient(t *testing.T) {
	t.Parallel()
	const n = 50
	r := newForeignRig(t, xstreamq.Config{})
	numbers := foreignQueue[int](t, r.client, "numbers")
	words := foreignQueue[string](t, r.client, "words")
	var mu sync.Mutex
	sum, length := 0, 0
	done := make(chan struct{}, 2*n)
	subscribe := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := numbers.Subscribe("g", func(_ context.Context, m *xstreamq.Message[int]) error {
		mu.Lock()
		sum += m.Body
		mu.Unlock()
		if m.Queue != "numbers" {
			t.Errorf("a number from %s", m.Queue)
		}
		done <- struct{}{}
		return nil
	}, xstreamq.SubscribeOptions{})
	subscribe(err)
	_, err = words.Subscribe("g", func(_ context.Context, m *xstreamq.Message[string]) error {
		mu.Lock()
		length += len(m.Body)
		mu.Unlock()
		done <- struct{}{}
		return nil
	}, xstreamq.SubscribeOptions{})
	subscribe(err)
	if _, err = words.Subscribe("g", func(context.Context, *xstreamq.Message[string]) error { return nil },
		xstreamq.SubscribeOptions{}); !errors.Is(err, xstreamq.ErrAlreadySubscribed) {
		t.Errorf("the same group twice: %v", err)
	}
	r.start()
	for i := range n {
		_, err1 := numbers.Publish(t.Context(), i)
		_, err2 := words.Publish(t.Context(), "four")
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * n {
		foreignAwait(t, done)
	}
	r.stop()
	if sum != n*(n-1)/2 || length != 4*n || len(done) != 0 {
		t.Errorf("sum %d, length %d, %d deliveries too many", sum, length, len(done))
	}
}

// StartFrom: a new group gets what is in the queue, or only what is published after it was created; one that exists goes on where it
// is, whatever the option says.
func TestStartFrom(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{CompactEvery: -1})
	before, during, away, after := numbered("before", 30), numbered("during", 30), numbered("away", 30), numbered("after", 30)
	var all, fresh, first bodies
	r.publishAll(before)
	r.subscribe("all", all.handle, xstreamq.SubscribeOptions{StartFrom: xstreamq.Beginning})
	unsure := r.subscribe("new", fresh.handle, xstreamq.SubscribeOptions{StartFrom: xstreamq.Now})
	r.subscribe("default", first.handle, xstreamq.SubscribeOptions{})
	r.start()
	r.publishAll(during)
	for _, group := range []string{"all", "new", "default"} {
		r.waitEnded(group)
	}
	if err := unsure.Unsubscribe(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.publishAll(away)
	r.subscribe("new", fresh.handle, xstreamq.SubscribeOptions{StartFrom: xstreamq.Now})
	r.publishAll(after)
	for _, group := range []string{"all", "new", "default"} {
		r.waitEnded(group)
	}
	r.stop()
	checkBodies(t, "all", &all, before, during, away, after)
	checkBodies(t, "default", &first, before, during, away, after)
	checkBodies(t, "new", &fresh, during, away, after)
}

// A group that is added while the client runs gets the backlog that is still in the queue: with a lagging group all of it.
func TestLateGroupGetsBacklog(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, rapidly)
	backlog, more := numbered("backlog", 300), numbered("more", 50)
	gate := newHeldGate()
	r.subscribe("lagging", gate.handle, xstreamq.SubscribeOptions{Concurrency: 1, Prefetch: -1})
	var quick, late bodies
	r.subscribe("quick", quick.handle, xstreamq.SubscribeOptions{})
	r.start()
	r.publishAll(backlog)
	gate.next(t)
	r.waitEnded("quick")
	r.waitRounds("compactor", 3)

	sub := r.subscribe("late", late.handle, xstreamq.SubscribeOptions{})
	if err := sub.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.publishAll(more)
	r.waitEnded("late")
	r.waitEnded("quick")
	checkBodies(t, "late", &late, backlog, more)
	checkBodies(t, "quick", &quick, backlog, more)
	for range len(backlog) + len(more) - 1 {
		gate.out <- nil
		gate.next(t)
	}
	gate.out <- nil
	r.waitEnded("lagging")
}

// The processes of one group share its messages: each message is handled by one of them, once.
func TestGroupIsShared(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{ConsumerName: "same"})
	other := open(t, xstreamq.Config{KeyPrefix: r.prefix, ConsumerName: "same"})
	q := foreignQueue(t, other, "q", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	var handled bodies
	var rendezvous sync.WaitGroup // both processes have to take part
	rendezvous.Add(2)
	handler := func() xstreamq.Handler[[]byte] {
		var once sync.Once
		return func(ctx context.Context, m *xstreamq.Message[[]byte]) error {
			once.Do(rendezvous.Done)
			rendezvous.Wait()
			return handled.handle(ctx, m)
		}
	}
	opts := xstreamq.SubscribeOptions{Concurrency: 2, Prefetch: 2}
	r.subscribe("g", handler(), opts)
	if _, err := q.Subscribe("g", handler(), opts); err != nil {
		t.Fatal(err)
	}
	r.start()
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := numbered("m", 500)
	r.publishAll(want)
	r.waitEnded("g")
	checkBodies(t, "g", &handled, want)
}

// Subscriptions come and go on a running client: nothing is lost or handled twice on the way.
func TestSubscribeAndUnsubscribeWhileRunning(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	var handled bodies
	var want [][]string
	r.start()
	for i := range 20 {
		sub := r.subscribe("g", handled.handle, xstreamq.SubscribeOptions{})
		batch := numbered(fmt.Sprintf("round %02d", i), 20)
		want = append(want, batch)
		if i%2 == 0 {
			if err := sub.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		r.publishAll(batch)
		if err := errors.Join(sub.Unsubscribe(t.Context()), sub.Unsubscribe(t.Context())); err != nil {
			t.Fatal(err)
		}
		if err := sub.Ready(t.Context()); i%2 != 0 && err != nil && !errors.Is(err, xstreamq.ErrStopped) {
			t.Errorf("Ready after Unsubscribe: %v", err)
		}
	}
	r.subscribe("g", handled.handle, xstreamq.SubscribeOptions{})
	redistest.WaitFor(t, foreignWait, "all handled", func() bool { return len(handled.sorted()) >= 400 })
	r.waitEnded("g")
	r.stop()
	checkBodies(t, "g", &handled, want...)
}
