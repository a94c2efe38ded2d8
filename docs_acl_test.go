package xstreamq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The users of operations.md can do all that a publisher and a worker do, and Redis denies them only what the text says it
// denies.
func TestDocumentedPermissions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	admin := redistest.Dial(t, server.URL())
	do := func(words ...string) rueidis.RedisResult {
		return admin.Do(t.Context(), admin.B().Arbitrary(words...).Build())
	}
	for _, block := range docBlocks(readDoc(t, "docs/operations.md")) {
		if block.language != "acl" {
			continue
		}
		for line := range strings.Lines(block.text) {
			words := strings.Fields(line)
			words = append([]string{"ACL", "SETUSER", words[1], "reset"}, words[2:]...)
			if err := do(words...).Error(); err != nil {
				t.Fatalf("docs/operations.md:%d: %v", block.line, err)
			}
		}
	}
	as := func(user string, logs *bytes.Buffer) *xstreamq.Client {
		client, err := xstreamq.Open("redis://"+user+":secret@"+server.Addr(), xstreamq.Config{
			Logger: slog.New(slog.NewTextHandler(logs, nil)), CompactEvery: 10 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	publishEverything(t, as("publisher", new(bytes.Buffer)))
	var logs bytes.Buffer
	workEverything(t, as("worker", &logs), admin)
	if logs.Len() > 0 {
		t.Errorf("the worker logged:\n%s", logs.String())
	}
	entries, err := do("ACL", "LOG").ToArray()
	if err != nil {
		t.Fatal(err)
	}
	var denied []string
	for i := range entries {
		entry, err := entries[i].AsMap()
		if err != nil {
			t.Fatal(err)
		}
		object, username := entry["object"], entry["username"]
		what, _ := object.ToString()
		who, _ := username.ToString()
		denied = append(denied, who+" "+what)
	}
	slices.Sort(denied)
	want := []string{"publisher cluster|slots", "worker cluster|slots", "worker config|get"}
	if diff := cmp.Diff(want, slices.Compact(denied)); diff != "" {
		t.Errorf("denied (-want +got):\n%s", diff)
	}
}

// publishEverything has a publisher do all it can: the orders 1 to 20, some of them later.
func publishEverything(t *testing.T, client *xstreamq.Client) {
	t.Helper()
	orders, err := xstreamq.NewQueue[Order](client, "orders")
	if err != nil {
		t.Fatal(err)
	}
	var batch []xstreamq.Outgoing[Order]
	for id := range 20 {
		m := xstreamq.Outgoing[Order]{Body: Order{ID: id + 1}}
		if id%4 == 0 {
			m.Options = append(m.Options, xstreamq.WithDelay(100*time.Millisecond))
		}
		batch = append(batch, m)
	}
	for _, r := range orders.PublishBatch(t.Context(), batch) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	if err := client.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// workEverything has a worker take over from one that vanished, handle, retry, release, bury and skip, and stop with messages
// that have not begun.
func workEverything(t *testing.T, client *xstreamq.Client, admin rueidis.Client) {
	t.Helper()
	vanish := [][]string{
		{"XGROUP", "CREATE", "{orders}", "shipping", "0"},
		{"XREADGROUP", "GROUP", "shipping", "vanished~100", "COUNT", "2", "STREAMS", "{orders}", ">"},
		{"XGROUP", "CREATECONSUMER", "{orders}", "shipping", "idle~100"},
	}
	for _, words := range vanish {
		if err := admin.Do(t.Context(), admin.B().Arbitrary(words...).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	orders, err := xstreamq.NewQueue[Order](client, "orders")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	seen := map[int]int{}
	dead := make(chan xstreamq.DeadMessage, 1)
	started := make(chan struct{}, 100)
	handle := func(ctx context.Context, m *xstreamq.Message[Order]) error {
		mu.Lock()
		seen[m.Body.ID]++
		runs := seen[m.Body.ID]
		mu.Unlock()
		switch {
		case m.Body.ID == 0: // held until Stop
			started <- struct{}{}
			<-xstreamq.Draining(ctx)
			return nil
		case m.Body.ID == 3:
			return errors.New("never")
		case m.Body.ID == 4 && runs == 1:
			return xstreamq.Release(errors.New("not now"))
		case m.Body.ID == 6 && runs == 1:
			return errors.New("once")
		}
		return nil
	}
	_, err = orders.Subscribe("shipping", handle, xstreamq.SubscribeOptions{
		Concurrency: 2, MaxRetries: 1, VisibilityTimeout: time.Second, Dedupe: time.Minute, RetryMaxLen: 1000,
		Backoff:      xstreamq.Backoff{Initial: time.Millisecond},
		OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 30*time.Second, "every order to run", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(seen) == 20 && seen[3] == 2 && seen[4] == 2 && seen[6] == 2
	})
	if d := <-dead; d.Reason != xstreamq.Failed {
		t.Errorf("dead letter: %+v", d)
	}
	if err := client.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	for range 5 {
		if _, err := orders.Publish(t.Context(), Order{}); err != nil {
			t.Fatal(err)
		}
	}
	<-started
	<-started
	redistest.WaitFor(t, 30*time.Second, "a lease to be renewed", func() bool {
		stats, err := admin.Do(t.Context(), admin.B().Info().Section("commandstats").Build()).ToString()
		return err == nil && strings.Contains(stats, "cmdstat_xclaim:")
	})
	if err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
