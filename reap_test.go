package xstreamq

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// reapRig is a subscription that never starts, and its keys as the view shows them.
func reapRig(t *testing.T) (*subscription, *view) {
	t.Helper()
	prefix := redistest.Prefix(t)
	c, err := Open(redistest.URL(t), Config{KeyPrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	v := newView(t, redistest.Client(t), prefix, "q", "g")
	v.do("XGROUP CREATE @queue g 0-0 MKSTREAM\nXGROUP CREATE @retry g-retry 0-0 MKSTREAM", 0)
	return newSubscription(c, "q", "g", SubscribeOptions{}.withDefaults(), nil), v
}

// The reaper finds the consumers that hold nothing among thousands, deletes them in pages, and leaves those that hold something or
// gave a sign of life lately.
func TestReaper(t *testing.T) {
	t.Parallel()
	s, v := reapRig(t)
	var create strings.Builder
	for i := range 2*reapPage + 10 {
		fmt.Fprintf(&create, "XGROUP CREATECONSUMER @queue g idle%d~30000\n", i)
	}
	v.do(create.String()+"XADD @queue 1-0 body a\nXREADGROUP GROUP g busy STREAMS @queue >\nXADD @retry 1-0 body a\n"+
		"XREADGROUP GROUP g-retry again STREAMS @retry >\nXGROUP CREATECONSUMER @retry g-retry idle", 0)
	names := func(l *lane, idle time.Duration) []string {
		t.Helper()
		names, err := s.idleConsumers(t.Context(), l, idle)
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	for _, l := range s.lanes {
		if young := names(l, time.Hour); len(young) > 0 {
			t.Errorf("%d consumers pass for idle for an hour", len(young))
		}
		// What holds something passes the look when that came after it.
		if err := s.client.reap(t.Context(), l, append(names(l, 0), "busy", "again")); err != nil {
			t.Error(err)
		}
	}
	got := v.consumers(v.key("queue"), "g") + v.consumers(v.key("retry"), "g-retry")
	if diff := cmp.Diff(" busy again", got); diff != "" {
		t.Errorf("consumers that are left, -want +got:\n%.500s", diff)
	}
}

// A consumer that is deleted while its read is blocked gets its message all the same, and exists again.
func TestReapOfAWaitingConsumer(t *testing.T) {
	t.Parallel()
	s, v := reapRig(t)
	opts, err := rueidis.ParseURL(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	opts.DisableCache, opts.ClientName = true, strings.Trim(v.prefix, ":")
	reader, err := rueidis.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reader.Close)
	v.do("XGROUP CREATECONSUMER @queue g c", 0)
	got := make(chan string, 1)
	go func() {
		cmd := reader.B().Xreadgroup().Group("g", "c").Block(30000).Streams().Key(v.key("queue")).Id(">").Build()
		reply, err := reader.Do(t.Context(), cmd).AsXRead()
		if err != nil || len(reply[v.key("queue")]) != 1 {
			got <- fmt.Sprint(reply, err)
			return
		}
		got <- reply[v.key("queue")][0].ID
	}()
	redistest.WaitFor(t, 30*time.Second, "a blocked read", func() bool {
		for line := range strings.Lines(str(v.ask("CLIENT", "LIST"))) {
			if strings.Contains(line, " name="+opts.ClientName+" ") && strings.Contains(line, " cmd=xreadgroup ") {
				return true
			}
		}
		return false
	})
	if err := s.client.reap(t.Context(), s.queueLane, []string{"c"}); err != nil {
		t.Fatal(err)
	}
	if left := v.consumers(v.key("queue"), "g"); left != "" {
		t.Fatalf("%s is left", left)
	}
	v.do("XADD @queue 1-0 body a", 0)
	if id := <-got; id != "1-0" {
		t.Errorf("it read %s", id)
	}
	if diff := cmp.Diff("queue\n  1-0 body=a\n  g at 1-0: c\n    1-0 c x1\nretry\n  g-retry at 0-0:\n", v.dump()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
