package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// cancelled calls Cancel for queue "q".
func (r *forgetRig) cancelled(id string) bool {
	r.t.Helper()
	ok, err := r.client.Cancel(r.t.Context(), "q", id)
	if err != nil {
		r.t.Error(err)
	}
	return ok
}

// Cancel takes back what is not due yet, once; what is due, was never there or is of another queue it does not.
func TestCancel(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	q := stopQueue(t, r.client, "q")
	got := make(chan string, 10)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		got <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{})
	publish := func(body string, option xstreamq.PublishOption) string {
		t.Helper()
		id, err := q.Publish(t.Context(), body, option)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	due := time.Now().Add(time.Hour)
	first, second, kept := publish("a", xstreamq.WithDelay(time.Hour)), publish("b", xstreamq.WithDeliverAt(due)), publish("c", xstreamq.WithDeliverAt(due))
	for _, id := range []string{first, second} {
		if !r.cancelled(id) {
			t.Errorf("%s was not cancelled", id)
		}
		if r.cancelled(id) {
			t.Errorf("%s was cancelled twice", id)
		}
	}
	if n := r.int("ZCARD @delayed"); n != 1 {
		t.Errorf("%d messages are left, want 1", n)
	}
	if ok, err := r.client.Cancel(t.Context(), "other", kept); ok || err != nil {
		t.Errorf("of another queue: %v, %v", ok, err)
	}
	stopStart(t, r.client)
	soon := publish("d", xstreamq.WithDelay(time.Millisecond))
	if body := stopTake(t, "the one that was due", got); body != "d" {
		t.Errorf("got %q", body)
	}
	for _, id := range []string{soon, "d5-aa", "d" + strings.Repeat("9", 50) + "-0"} {
		if r.cancelled(id) {
			t.Errorf("%s was cancelled", id)
		}
	}
	for _, id := range []string{"", "5-0", "d5", "d5-", "d-5", "d5-xyz", "*", "d5-*", "d5-a\x00", "d5-" + strings.Repeat("a", 100)} {
		if ok, err := r.client.Cancel(t.Context(), "q", id); ok || !errors.Is(err, xstreamq.ErrInvalidMessage) {
			t.Errorf("%q: %v, %v, want ErrInvalidMessage", id, ok, err)
		}
	}
	if _, err := r.client.Cancel(t.Context(), "a b", kept); !errors.Is(err, xstreamq.ErrInvalidName) {
		t.Error(err)
	}
	r.do("DEL @delayed\nSET @delayed x")
	if _, err := r.client.Cancel(t.Context(), "q", kept); err == nil || !strings.Contains(err.Error(), "XQTYPE") || !strings.Contains(err.Error(), r.key("delayed")) {
		t.Errorf("of the wrong type: %v", err)
	}
}

// A message that another program stored at another time than its id says is found too, among many.
func TestCancelStoredElsewhere(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	r.script(`for i = 1, 5000 do redis.call('ZADD', KEYS[1], i, 'd' .. i .. '-aa\0' .. '4:body1:a') end
		redis.call('ZADD', KEYS[1], 7000, 'd9-bb\0' .. '4:body1:b', 9, 'd7000-bb\0' .. '4:body1:b', 9, 'd9-bbc\0', 9, 'd9-bb')`, "delayed")
	for _, id := range []string{"d9-bb", "d7000-bb"} {
		if !r.cancelled(id) {
			t.Errorf("%s was not cancelled", id)
		}
		if r.cancelled(id) {
			t.Errorf("%s was cancelled twice", id)
		}
	}
	if n := r.int("ZCARD @delayed"); n != 5002 {
		t.Errorf("%d members are left, want 5002", n)
	}
}

// A message is found among many large ones that are due at once as well.
func TestCancelAmongLargeOnes(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	r.script(`local body = string.rep('x', 600000)
		for i = 10, 49 do redis.call('ZADD', KEYS[1], 7, 'd7-' .. i .. '\0' .. body) end`, "delayed")
	for i := 49; i >= 10; i -= 3 {
		if id := fmt.Sprintf("d7-%d", i); !r.cancelled(id) || r.cancelled(id) {
			t.Errorf("%s was not cancelled once", id)
		}
	}
	if n := r.int("ZCARD @delayed"); n != 26 {
		t.Errorf("%d are left, want 26", n)
	}
}

// Of many calls for one message at once exactly one takes it back.
func TestCancelAtOnce(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	for i := range 50 {
		due, stored := i, i
		if i%2 == 1 {
			stored = 100_000 // not where its id says
		}
		id := fmt.Sprintf("d%d-aa", due)
		r.script(fmt.Sprintf(`redis.call('ZADD', KEYS[1], %d, '%s\0' .. '4:body1:a')`, stored, id), "delayed")
		won := make(chan bool, 4)
		for range cap(won) {
			go func() { won <- r.cancelled(id) }()
		}
		n := 0
		for range cap(won) {
			if <-won {
				n++
			}
		}
		if n != 1 {
			t.Fatalf("%d calls cancelled %s", n, id)
		}
	}
}

// A message that is cancelled just when it is due is either taken back, and nobody gets it, or it is not, and its group gets it once.
func TestCancelAgainstPromotion(t *testing.T) {
	t.Parallel()
	const n = 600
	r := newForgetRig(t, xstreamq.Config{})
	q := stopQueue(t, r.client, "q")
	var mu sync.Mutex
	runs := map[string]int{}
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		mu.Lock()
		defer mu.Unlock()
		runs[m.OriginalID]++
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 20})
	stopStart(t, r.client)

	ids := make([]string, n)
	taken := make([]bool, n)
	var wg sync.WaitGroup
	for i := range n {
		delay := time.Duration(20+i%30) * time.Millisecond
		id, err := q.Publish(t.Context(), "x", xstreamq.WithDelay(delay))
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = id
		wg.Go(func() {
			timer := time.NewTimer(delay + time.Duration(i%7-3)*time.Millisecond)
			defer timer.Stop()
			<-timer.C // around the moment at which it is promoted
			taken[i] = r.cancelled(id)
		})
	}
	wg.Wait()
	redistest.WaitFor(t, stopWait, "every message promoted", func() bool { return r.int("ZCARD @delayed") == 0 })
	redistest.WaitFor(t, stopWait, "every message handled", func() bool {
		groups := r.list("XINFO GROUPS @queue")
		about, _ := groups[0].AsMap()
		last, pending := about["last-delivered-id"], about["pending"]
		at, _ := last.ToString()
		open, _ := pending.AsInt64()
		return open == 0 && len(r.list("XRANGE @queue "+at+" + COUNT 2")) < 2
	})
	mu.Lock()
	defer mu.Unlock()
	cancelled := 0
	for i, id := range ids {
		want := 1
		if taken[i] {
			cancelled++
			want = 0
		}
		if runs[id] != want {
			t.Errorf("%s: cancelled %v, and handled %d times", id, taken[i], runs[id])
		}
	}
	t.Logf("%d of %d were cancelled", cancelled, n)
}
