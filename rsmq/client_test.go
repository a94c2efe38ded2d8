package rsmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Messages of one call keep their order, within one microsecond too, and in every page.
func TestBatchesKeepOrder(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	bodies := make([]string, 2*sendPage+50)
	for i := range bodies {
		bodies[i] = fmt.Sprint(i)
	}
	ids := send(t, c, "q", bodies...)
	if !slices.IsSorted(ids) {
		t.Error("the ids are not in the order of the bodies")
	}
	var got []string
	for len(got) < len(bodies) {
		ms, err := c.ReceiveMessages(t.Context(), "q", 99, ReceiveOptions{})
		if err != nil || len(ms) == 0 {
			t.Fatalf("after %d messages: %d more, %v", len(got), len(ms), err)
		}
		for _, m := range ms {
			got = append(got, m.Body)
		}
	}
	if !slices.Equal(bodies, got) {
		t.Errorf("received in the order %q", got)
	}
	found, err := c.DeleteMessages(t.Context(), "q", append(ids[:2:2], "abcdefghij0123456789abcdefghij01", ids[0]))
	if err != nil || !slices.Equal(found, []bool{true, true, false, false}) {
		t.Errorf("deleted %v: %v", found, err)
	}
	if a := attributes(t, c, "q"); a.Messages != int64(len(bodies)-2) || a.Sent != int64(len(bodies)) || a.Visible != 0 {
		t.Errorf("attributes: %+v", a)
	}
}

// One call delivers no more than about 1 MiB, and at least one message.
func TestReceiveIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{MaxSize: Size(Unlimited)})
	body := strings.Repeat("x", 400<<10)
	send(t, c, "q", body, body, body, body, body)
	ms, err := c.ReceiveMessages(t.Context(), "q", 5, ReceiveOptions{})
	if err != nil || len(ms) != 3 {
		t.Errorf("received %d messages: %v", len(ms), err)
	}
	ms, err = c.PopMessages(t.Context(), "q", 5)
	if err != nil || len(ms) != 2 || ms[0].Body != body {
		t.Errorf("popped %d messages: %v", len(ms), err)
	}
}

// Times are kept to the millisecond.
func TestFractionsOfASecond(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	if _, err := c.SendMessage(t.Context(), "q", "late", SendOptions{Delay: Duration(time.Hour + 1500*time.Microsecond)}); err != nil {
		t.Fatal(err)
	}
	id := send(t, c, "q", "now")[0]
	if ok, err := c.ChangeMessageVisibility(t.Context(), "q", id, 0); !ok || err != nil {
		t.Error(ok, err)
	}
	m, ok, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{VisibilityTimeout: Duration(20 * time.Millisecond)})
	if !ok || err != nil || m.ID != id {
		t.Fatal(m, ok, err)
	}
	again, ok, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{Wait: 10 * time.Second})
	if !ok || err != nil || again.ID != id || again.ReceiveCount != 2 || !again.FirstReceived.Equal(m.FirstReceived) {
		t.Errorf("%+v, %v, %v; the first time %+v", again, ok, err, m)
	}
	if d := again.FirstReceived.Sub(again.Sent); d < -time.Second || d > time.Minute {
		t.Errorf("first received %s after it was sent", d)
	}
	for _, d := range []time.Duration{-time.Nanosecond, MaxTime + 1} {
		if _, err := c.ChangeMessageVisibility(t.Context(), "q", id, d); !errors.Is(err, ErrInvalidValue) {
			t.Errorf("%s: %v", d, err)
		}
	}
	if err := c.CreateQueue(t.Context(), "p", QueueOptions{VisibilityTimeout: Duration(time.Second / 2)}); !errors.Is(err, ErrInvalidValue) {
		t.Errorf("a queue of half a second: %v", err)
	}
}

// A long poll returns as soon as something comes, when nothing does, and with its context.
func TestWait(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	t.Run("a message comes", func(t *testing.T) {
		t.Parallel()
		create(t, c, "q1", QueueOptions{})
		received := make(chan Message, 1)
		go func() {
			m, _, err := c.ReceiveMessage(context.WithoutCancel(t.Context()), "q1", ReceiveOptions{Wait: time.Minute})
			if err != nil {
				t.Error(err)
			}
			received <- m
		}()
		id := send(t, c, "q1", "a")[0]
		if m := <-received; m.ID != id {
			t.Errorf("received %+v", m)
		}
	})
	t.Run("none comes", func(t *testing.T) {
		t.Parallel()
		began := time.Now()
		_, ok, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{Wait: 100 * time.Millisecond})
		if ok || err != nil || time.Since(began) < 100*time.Millisecond {
			t.Error(ok, err, time.Since(began))
		}
	})
	t.Run("the context ends", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, _, err := c.ReceiveMessage(ctx, "q", ReceiveOptions{Wait: time.Hour}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	t.Run("negative", func(t *testing.T) {
		t.Parallel()
		if _, _, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{Wait: -1}); !errors.Is(err, ErrInvalidValue) {
			t.Error(err)
		}
	})
}

// A send that races DeleteQueue is stored in a queue, or refused; nothing is left behind.
func TestDeleteQueueLeavesNothing(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	for range 50 {
		create(t, c, "q", QueueOptions{})
		sent := make(chan error)
		go func() {
			_, err := c.SendMessage(context.WithoutCancel(t.Context()), "q", "a", SendOptions{})
			sent <- err
		}()
		if err := c.DeleteQueue(t.Context(), "q"); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil && !errors.Is(err, ErrQueueNotFound) {
			t.Fatal(err)
		}
		if n, err := run(t, c, "EXISTS", c.keys("q").Hash, c.keys("q").Messages).AsInt64(); n != 0 || err != nil {
			t.Fatalf("%d keys are left: %v", n, err)
		}
	}
}

// The name that would mix messages with the list of queues is refused by every operation.
func TestReservedName(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	_, _, receive := c.ReceiveMessage(t.Context(), "QUEUES", ReceiveOptions{})
	_, sent := c.SendMessage(t.Context(), "QUEUES", "m", SendOptions{})
	for _, err := range []error{receive, sent, c.CreateQueue(t.Context(), "QUEUES", QueueOptions{}), c.DeleteQueue(t.Context(), "QUEUES")} {
		if !errors.Is(err, ErrReserved) || !errors.Is(err, ErrInvalidFormat) {
			t.Error(err)
		}
	}
}
