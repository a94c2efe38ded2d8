package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

// arrival is what a subscriber got.
type arrival struct {
	Body, RSMQ, Received, Sent string
	at                         time.Time
}

// TestRSMQMigrateToSubscriber moves a queue whose messages are sent and consumed meanwhile to one that a subscriber works on: it gets
// what was not consumed once, in order, delayed messages not before their time, with what RSMQ knew of each.
func TestRSMQMigrateToSubscriber(t *testing.T) {
	t.Parallel()
	const before, during, late, delay = 1000, 300, 20, 3 * time.Second
	m := newMigration(t, rsmq.QueueOptions{})
	var mu sync.Mutex
	var got []arrival
	subscribeTo(t, m, func(a arrival) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, a)
	})
	m.fill(t, 1, before, rsmq.SendOptions{})
	filled := time.Now()
	redistest.WaitFor(t, 10*time.Second, "another millisecond", func() bool { return time.Since(filled) > 2*time.Millisecond })
	redelivered, ok, err := m.client.ReceiveMessage(t.Context(), "q", rsmq.ReceiveOptions{VisibilityTimeout: rsmq.Seconds(0)})
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	for i := range late {
		m.fill(t, 1_000_000+i, 1_000_000+i, rsmq.SendOptions{Delay: rsmq.Duration(delay)})
	}
	var wg sync.WaitGroup
	consumed := map[string]bool{}
	wg.Go(func() {
		for i := range during {
			if _, err := m.client.SendMessage(t.Context(), "q", strconv.Itoa(before+1+i), rsmq.SendOptions{}); err != nil {
				t.Error(err)
			}
			if i%3 == 0 { // a consumer that still runs takes what it can
				popped, ok, err := m.client.PopMessage(t.Context(), "q")
				if err != nil {
					t.Error(err)
				}
				consumed[popped.Body] = ok
			}
		}
	})
	output(t, m.command(t, redistest.URL(t)))
	wg.Wait()
	output(t, m.command(t, redistest.URL(t)))
	delete(consumed, "") // where there was nothing
	total := before + during + late - len(consumed)
	redistest.WaitFor(t, 30*time.Second, fmt.Sprintf("%d messages", total), func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) >= total
	})
	mu.Lock()
	defer mu.Unlock()
	var plain, delayed []string
	for _, a := range got {
		if n, _ := strconv.Atoi(a.Body); n < 1_000_000 {
			plain = append(plain, a.Body)
		} else {
			delayed = append(delayed, a.Body)
			checkDelay(t, a, delay)
		}
		received := "0"
		if a.RSMQ == redelivered.ID {
			received = "1"
		}
		if sent := sentMilliseconds(a.RSMQ); a.Received != received || a.Sent != sent {
			t.Errorf("%+v; want rsmq-rc %s and rsmq-sent %s", a, received, sent)
		}
	}
	// The one that was received and given back comes where RSMQ would deliver it: after those sent before that.
	var wantPlain, wantDelayed []string
	for i := 2; i <= before+during; i++ {
		wantPlain = append(wantPlain, strconv.Itoa(i))
		if i == before {
			wantPlain = append(wantPlain, redelivered.Body)
		}
	}
	wantPlain = slices.DeleteFunc(wantPlain, func(body string) bool { return consumed[body] })
	for i := range late {
		wantDelayed = append(wantDelayed, strconv.Itoa(1_000_000+i))
	}
	if diff := cmp.Diff(wantPlain, plain); diff != "" {
		t.Errorf("visible ones (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantDelayed, delayed); diff != "" {
		t.Errorf("delayed ones (-want +got):\n%s", diff)
	}
}

// subscribeTo starts a subscriber of the queue to, which handles one message after the other.
func subscribeTo(t *testing.T, m *migration, tell func(arrival)) {
	t.Helper()
	client, err := xstreamq.Open(redistest.URL(t), xstreamq.Config{KeyPrefix: m.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	queue, err := xstreamq.NewQueue(client, "to", xstreamq.WithCodec(xstreamq.String{}))
	if err != nil {
		t.Fatal(err)
	}
	handle := func(_ context.Context, got *xstreamq.Message[string]) error {
		tell(arrival{got.Body, got.Header["rsmq-id"], got.Header["rsmq-rc"], got.Header["rsmq-sent"], time.Now()})
		return nil
	}
	if _, err := queue.Subscribe("g", handle, xstreamq.SubscribeOptions{Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// checkDelay reports a message that came too early. RSMQ counts from the millisecond in which the server got the message, cut off, so
// that by a finer clock it may come up to one earlier.
func checkDelay(t *testing.T, a arrival, delay time.Duration) {
	t.Helper()
	sent, err := strconv.ParseInt(sentMilliseconds(a.RSMQ), 10, 64)
	if err != nil {
		t.Errorf("%s: %v", a.Body, err)
		return
	}
	if early := time.UnixMilli(sent).Add(delay).Sub(a.at); early > 0 {
		t.Errorf("%s came %s before it was due", a.Body, early)
	}
}

// sentMilliseconds is when a message was sent, as its id says.
func sentMilliseconds(id string) string {
	us, err := strconv.ParseInt(id[:min(10, len(id))], 36, 64)
	if err != nil {
		return "no time: " + err.Error()
	}
	return strconv.FormatInt(us/1000, 10)
}
