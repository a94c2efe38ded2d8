//go:build interop

package rsmq

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// pair is a Go client and a Node process on one Redis.
func pair(t *testing.T, pkg string, realtime bool) (*Client, *peer) {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	return over(t, redistest.Dial(t, server.URL()), Config{Realtime: realtime}), startPeer(t, pkg, server.Addr(), "rsmq", realtime)
}

// What one side creates, sends, receives, extends, pops, deletes and configures, the other one sees, for both versions in use.
func TestInteropEachOther(t *testing.T) {
	for _, pkg := range []string{"rsmq", "rsmq-old"} {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			c, node := pair(t, pkg, false)
			ctx := t.Context()
			node.must("createQueue", map[string]any{"qname": "fromnode", "vt": 20, "delay": 0}, nil)
			create(t, c, "fromgo", QueueOptions{VisibilityTimeout: Seconds(20)})
			if err := c.CreateQueue(ctx, "fromnode", QueueOptions{}); !errors.Is(err, ErrQueueExists) {
				t.Error(err)
			}
			if _, err := node.call("createQueue", map[string]any{"qname": "fromgo"}); !errors.Is(err, ErrQueueExists) {
				t.Error(err)
			}
			for _, q := range []string{"fromnode", "fromgo"} {
				t.Run(q, func(t *testing.T) { interopQueue(t, c, node, q) })
			}
			var names []string
			node.must("listQueues", nil, &names)
			ours, err := c.ListQueues(ctx)
			if len(names) != 2 || len(ours) != 2 || err != nil {
				t.Error(names, ours, err)
			}
			if err := c.DeleteQueue(ctx, "fromnode"); err != nil {
				t.Error(err)
			}
			node.must("deleteQueue", map[string]any{"qname": "fromgo"}, nil)
			if _, err := c.GetQueueAttributes(ctx, "fromgo"); !errors.Is(err, ErrQueueNotFound) {
				t.Error(err)
			}
			if _, err := node.call("getQueueAttributes", map[string]any{"qname": "fromnode"}); !errors.Is(err, ErrQueueNotFound) {
				t.Error(err)
			}
		})
	}
}

// interopQueue passes messages both ways through one queue.
func interopQueue(t *testing.T, c *Client, node *peer, q string) {
	ctx := t.Context()
	body := "Grüße, 世界 😀 \x00 \r\n \" \\"
	goID := send(t, c, q, body)[0]
	var m nodeMessage
	node.must("receiveMessage", map[string]any{"qname": q}, &m)
	if m.ID != goID || m.Message == nil || *m.Message != body || m.RC != 1 {
		t.Errorf("Node received %+v", m)
	}
	if ok, err := c.ChangeMessageVisibility(ctx, q, m.ID, 0); !ok || err != nil {
		t.Error(ok, err)
	}
	got, ok, err := c.ReceiveMessage(ctx, q, ReceiveOptions{})
	if !ok || err != nil || got.Body != body || got.ReceiveCount != 2 || got.FirstReceived.UnixMilli() != m.FR {
		t.Errorf("%+v, %v, %v; Node had %+v", got, ok, err, m)
	}
	var n int
	node.must("deleteMessage", map[string]any{"qname": q, "id": goID}, &n)
	if n != 1 {
		t.Errorf("Node deleted %d", n)
	}

	var nodeID string
	node.must("sendMessage", map[string]any{"qname": q, "message": body}, &nodeID)
	got, ok, err = c.ReceiveMessage(ctx, q, ReceiveOptions{})
	if !ok || err != nil || got.ID != nodeID || got.Body != body || got.ReceiveCount != 1 {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	node.must("changeMessageVisibility", map[string]any{"qname": q, "id": nodeID, "vt": 0}, &n)
	popped, ok, err := c.PopMessage(ctx, q)
	if n != 1 || !ok || err != nil || popped.ReceiveCount != 2 || !popped.FirstReceived.Equal(got.FirstReceived) {
		t.Errorf("%d, %+v, %v, %v", n, popped, ok, err)
	}

	send(t, c, q, "for pop")
	node.must("popMessage", map[string]any{"qname": q}, &m)
	if m.Message == nil || *m.Message != "for pop" {
		t.Errorf("Node popped %+v", m)
	}
	if _, err := c.SetQueueAttributes(ctx, q, QueueChanges{Delay: Seconds(3), MaxSize: Size(2048)}); err != nil {
		t.Error(err)
	}
	var seen map[string]any
	node.must("setQueueAttributes", map[string]any{"qname": q, "vt": 7}, &seen)
	if seen["delay"] != 3.0 || seen["maxsize"] != 2048.0 || seen["totalsent"] != 3.0 || seen["totalrecv"] != 5.0 {
		t.Errorf("Node sees %v", seen)
	}
	if a := attributes(t, c, q); a.VisibilityTimeout != 7*time.Second || a.Messages != 0 {
		t.Errorf("attributes: %+v", a)
	}
}

// Bodies of the largest size, in UTF-16 code units, pass both ways; one unit more is refused by both. Unlimited ones pass.
func TestInteropSizes(t *testing.T) {
	t.Parallel()
	c, node := pair(t, "rsmq", false)
	create(t, c, "q", QueueOptions{})
	node.must("createQueue", map[string]any{"qname": "any", "maxsize": -1}, nil)
	for unit, n := range map[string]int{"x": 65536, "€": 65536, "😀": 32768} {
		t.Run(unit, func(t *testing.T) {
			body := strings.Repeat(unit, n)
			send(t, c, "q", body)
			var m nodeMessage
			node.must("popMessage", map[string]any{"qname": "q"}, &m)
			if m.Message == nil || *m.Message != body {
				t.Error("Node popped another body")
			}
			node.must("sendMessage", map[string]any{"qname": "q", "message": map[string]any{"$repeat": []any{unit, n}}}, nil)
			if got, _, err := c.PopMessage(t.Context(), "q"); err != nil || got.Body != body {
				t.Errorf("popped another body: %v", err)
			}
			if _, err := c.SendMessage(t.Context(), "q", body+"x", SendOptions{}); !errors.Is(err, ErrMessageTooLong) {
				t.Error(err)
			}
			if _, err := node.call("sendMessage", map[string]any{"qname": "q", "message": map[string]any{"$repeat": []any{unit, n + 1}}}); !errors.Is(err, ErrMessageTooLong) {
				t.Error(err)
			}
			send(t, c, "any", body+body)
			node.must("popMessage", map[string]any{"qname": "any"}, &m)
			if m.Message == nil || *m.Message != body+body {
				t.Error("Node popped another unlimited body")
			}
		})
	}
}

// Each side announces what it sends, and hears the other.
func TestInteropRealtime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	c := over(t, redistest.Dial(t, server.URL()), Config{Realtime: true})
	node := startPeer(t, "rsmq", server.Addr(), "rsmq", true)
	ear := startPeer(t, "rsmq", server.Addr(), "rsmq", false)
	create(t, c, "q", QueueOptions{})
	ear.tell("subscribe", map[string]any{"channel": "rsmq:rt:q"})
	if a := ear.read(); !a.Subscribed {
		t.Fatalf("%+v", a)
	}
	heard := make(chan int64, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- c.Subscribe(ctx, "q", func(n int64) { heard <- n }) }()
	redistest.WaitFor(t, 10*time.Second, "both subscriptions", func() bool { return numsub(t, c) == 2 })
	send(t, c, "q", "a")
	if a, n := ear.read(), <-heard; a.Message != "1" || n != 1 {
		t.Errorf("Node hears %+v, Go %d", a, n)
	}
	node.must("sendMessage", map[string]any{"qname": "q", "message": "b", "delay": 60}, nil)
	if a, n := ear.read(), <-heard; a.Message != "2" || n != 2 {
		t.Errorf("Node hears %+v, Go %d", a, n)
	}
	cancel()
	<-ended
}

// Four Go and four Node consumers race for 5,000 messages: each is delivered once.
func TestInteropRace(t *testing.T) {
	const messages = 5000
	server := redistest.Start(t, redistest.Options{})
	rc := redistest.Dial(t, server.URL())
	c := over(t, rc, Config{})
	create(t, c, "q", QueueOptions{VisibilityTimeout: Seconds(600)})
	ids := map[string]int{}
	for i := range messages {
		for _, id := range send(t, c, "q", fmt.Sprint(i)) {
			ids[id] = 0
		}
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	by := map[string]int{}
	count := func(id string, rc int64, who string) {
		mu.Lock()
		defer mu.Unlock()
		ids[id]++
		by[who]++
		if rc != 1 {
			t.Errorf("%s has receive count %d", id, rc)
		}
	}
	for range 4 {
		node := startPeer(t, "rsmq", server.Addr(), "rsmq", false)
		wg.Go(func() {
			node.tell("consume", map[string]any{"qname": "q", "patience": 10})
			for a := node.read(); !a.Done; a = node.read() {
				count(a.ID, a.RC, "Node")
			}
		})
		wg.Go(func() {
			for {
				m, ok, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{})
				if err != nil || !ok {
					if err != nil {
						t.Error(err)
					}
					return
				}
				count(m.ID, m.ReceiveCount, "Go")
				if found, err := c.DeleteMessage(t.Context(), "q", m.ID); err != nil || !found {
					t.Errorf("delete %s: %v, %v", m.ID, found, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("delivered: %v", by)
	for id, n := range ids {
		if n != 1 {
			t.Errorf("%s was delivered %d times", id, n)
		}
	}
	if len(ids) != messages || by["Go"] == 0 || by["Node"] == 0 {
		t.Errorf("%d ids, delivered %v", len(ids), by)
	}
	if a := attributes(t, c, "q"); a.Messages != 0 || a.Received != messages {
		t.Errorf("attributes: %+v", a)
	}
}

// Consumers of both kinds are killed with messages in hand: all of these come back, whoever asks.
func TestInteropKill(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	c := over(t, redistest.Dial(t, server.URL()), Config{})
	create(t, c, "q", QueueOptions{VisibilityTimeout: Seconds(1)})
	want := map[string]bool{}
	for i := range 200 {
		want[send(t, c, "q", fmt.Sprint(i))[0]] = true
	}
	node := startPeer(t, "rsmq", server.Addr(), "rsmq", false)
	node.tell("consume", map[string]any{"qname": "q", "patience": 1000, "keep": true, "vt": 1})
	ours := exec.Command("/proc/self/exe", "-test.run=^TestInteropHolder$")
	ours.Env = append(ours.Environ(), holderEnv+"="+server.URL())
	out, err := ours.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	held := make([]byte, 100)
	for n := 0; n < 50; {
		k, err := out.Read(held)
		if err != nil {
			t.Fatal(err)
		}
		n += k
	}
	for range 50 {
		if a := node.read(); a.ID == "" {
			t.Fatalf("%+v", a)
		}
	}
	node.kill()
	_ = ours.Process.Kill()
	_ = ours.Wait()
	got := map[string]bool{}
	redistest.WaitFor(t, 30*time.Second, "all of them", func() bool {
		ms, err := c.ReceiveMessages(t.Context(), "q", 100, ReceiveOptions{VisibilityTimeout: Seconds(600)})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range ms {
			got[m.ID] = true
		}
		return len(got) == len(want)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const holderEnv = "XSTREAMQ_TEST_RSMQ_HOLDER"

// An rsmq-worker of Node serves what Go sends, and keeps what its handler does not want.
func TestInteropNodeWorker(t *testing.T) {
	t.Parallel()
	c, node := pair(t, "rsmq", false)
	create(t, c, "q", QueueOptions{})
	node.tell("work", map[string]any{"qname": "q", "vt": 600})
	want := map[string]string{}
	for i := range 100 {
		body := fmt.Sprint("message ", i)
		want[send(t, c, "q", body)[0]] = body
	}
	kept := send(t, c, "q", "keep")[0]
	want[kept] = "keep"
	got := map[string]string{}
	for len(got) < len(want) {
		a := node.read()
		if a.ID == "" {
			t.Fatalf("%+v", a)
		}
		got[a.ID] = a.Message
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	redistest.WaitFor(t, 10*time.Second, "all but one deleted", func() bool { return attributes(t, c, "q").Messages == 1 })
	if sole(t, c) != kept {
		t.Error("another one was kept")
	}
}
