package rsmq

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// subscribing runs Subscribe until the returned func is called, and waits until it has subscribed; direct is not broken by a test.
func subscribing(t *testing.T, c, direct *Client, announced func(int64)) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error)
	go func() { ended <- c.Subscribe(ctx, "q", announced) }()
	redistest.WaitFor(t, 10*time.Second, "the subscription", func() bool { return numsub(t, direct) == 1 })
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		redistest.WaitFor(t, 10*time.Second, "the end of the subscription", func() bool { return numsub(t, direct) == 0 })
	}
}

func numsub(t *testing.T, c *Client) int64 {
	t.Helper()
	reply, err := run(t, c, "PUBSUB", "NUMSUB", c.channel("q")).ToArray()
	if err != nil || len(reply) != 2 {
		t.Fatal(reply, err)
	}
	n, err := reply[1].AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Subscribe hears what is sent in real time.
func TestSubscribe(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{Realtime: true})
	create(t, c, "q", QueueOptions{})
	heard := make(chan int64, 100)
	end := subscribing(t, c, c, func(n int64) { heard <- n })
	send(t, c, "q", "a", "b")
	send(t, c, "q", "c")
	if first, second := <-heard, <-heard; first != 2 || second != 3 {
		t.Errorf("heard %d and %d", first, second)
	}
	run(t, c, "PUBLISH", c.channel("q"), "no number")
	send(t, c, "q", "d")
	if n := <-heard; n != 4 {
		t.Errorf("heard %d", n)
	}
	end()
	send(t, c, "q", "e")
	if len(heard) > 0 {
		t.Errorf("heard %d after the end", <-heard)
	}
	if err := c.Subscribe(t.Context(), "a b", nil); !errors.Is(err, ErrInvalidFormat) {
		t.Error(err)
	}
}

// What is called may receive itself, also when much is announced meanwhile.
func TestSubscriberReceives(t *testing.T) {
	t.Parallel()
	const messages = 300
	c := fresh(t, Config{Realtime: true})
	create(t, c, "q", QueueOptions{})
	want, got := make([]string, messages), make(chan string, messages)
	end := subscribing(t, c, c, func(int64) {
		m, ok, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{})
		if err != nil || !ok {
			t.Error(ok, err)
		}
		got <- m.ID
	})
	defer end()
	for i := range want {
		want[i] = send(t, c, "q", "m")[0]
	}
	received := make([]string, messages)
	for i := range received {
		received[i] = <-got
	}
	if !slices.Equal(want, received) {
		t.Errorf("received %q", received)
	}
}

// After its connection broke Subscribe connects again, and says that something may have been missed.
func TestSubscribeConnectsAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	direct := over(t, redistest.Dial(t, server.URL()), Config{Realtime: true})
	proxy := redistest.NewProxy(t, server.URL())
	c := over(t, redistest.Dial(t, proxy.URL()), Config{})
	create(t, direct, "q", QueueOptions{})
	heard := make(chan int64, 100)
	defer subscribing(t, c, direct, func(n int64) { heard <- n })()
	for range 2 {
		proxy.Refuse()
		redistest.WaitFor(t, 10*time.Second, "the break", func() bool { return numsub(t, direct) == 0 })
		missed := send(t, direct, "q", "missed")
		proxy.Pass()
		if n := <-heard; n != -1 {
			t.Errorf("heard %d after the break", n)
		}
		if found, err := direct.DeleteMessages(t.Context(), "q", missed); err != nil || !found[0] {
			t.Error(found, err)
		}
		sent := send(t, direct, "q", "heard")
		if n := <-heard; n != 1 {
			t.Errorf("heard %d", n)
		}
		if _, err := direct.DeleteMessages(t.Context(), "q", sent); err != nil {
			t.Error(err)
		}
	}
}

// An answer of Redis that waiting does not cure ends a subscription.
func TestSubscribeRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	admin := over(t, redistest.Dial(t, server.URL()), Config{})
	run(t, admin, "ACL", "SETUSER", "deaf", "on", "nopass", "~*", "+@all", "resetchannels")
	c := over(t, redistest.Dial(t, "redis://deaf:x@"+server.Addr()), Config{})
	if err := c.Subscribe(t.Context(), "q", func(int64) {}); err == nil || redisCode(err) != "NOPERM" {
		t.Error(err)
	}
}
