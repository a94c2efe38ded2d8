package rsmq

import (
	"errors"
	"testing"
	"time"
)

// A purge deletes what no other call can: messages with a stranger's id, and such without a body. Attributes and counters stay.
func TestPurge(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	if _, err := c.PurgeMessages(t.Context(), "q", 10); !errors.Is(err, ErrQueueNotFound) {
		t.Errorf("no queue: %v", err)
	}
	create(t, c, "q", QueueOptions{})
	send(t, c, "q", "a", "b", "c")
	if _, err := c.SendMessage(t.Context(), "q", "late", SendOptions{Delay: Duration(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	run(t, c, "ZADD", c.keys("q").Messages, "1", "a stranger's", "2", "no body")
	run(t, c, "HSET", c.keys("q").Hash, "a stranger's", "body", "a stranger's:rc", "3")
	for i, want := range []int{4, 2, 0} {
		if n, err := c.PurgeMessages(t.Context(), "q", 4); n != want || err != nil {
			t.Errorf("page %d: %d, %v; want %d", i, n, err, want)
		}
	}
	if a := attributes(t, c, "q"); a.Messages != 0 || a.Sent != 4 || a.Received != 1 {
		t.Errorf("%+v", a)
	}
	const own = 7
	if n, err := run(t, c, "HLEN", c.keys("q").Hash).AsInt64(); n != own || err != nil {
		t.Errorf("%d fields are left: %v", n, err)
	}
	for _, most := range []int{0, -1, 1001} {
		if _, err := c.PurgeMessages(t.Context(), "q", most); !errors.Is(err, ErrInvalidValue) {
			t.Errorf("%d: %v", most, err)
		}
	}
}
