package xstreamq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The core on a Redis Cluster, with queues on both of its nodes in one client: messages are handled, retried, delayed and buried,
// nothing is left, and Stop does not wait for blocked reads.
func TestCoreOnACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	rc := c.client()
	client := stopNew(t, rc, xstreamq.Config{})
	names := []string{"q", "s"}
	owners := map[*clusterNode]bool{}
	handled, dead := make(chan string, 100), make(chan xstreamq.DeadMessage, 10)
	for _, name := range names {
		_, owner, _ := c.slot("{" + name + "}")
		owners[owner] = true
		stopSubscribe(t, stopQueue(t, client, name), func(_ context.Context, m *xstreamq.Message[string]) error {
			switch {
			case m.Body == "dies", m.Body == "fails once" && m.Retries == 0:
				return errors.New("no")
			case m.Body == "rejected":
				return xstreamq.DeadLetter(errors.New("never"))
			}
			handled <- m.Queue + " " + m.Body
			return nil
		}, xstreamq.SubscribeOptions{
			MaxRetries: 1, Backoff: xstreamq.Backoff{Initial: 10 * time.Millisecond},
			OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
		})
	}
	if len(owners) != 2 {
		t.Fatalf("the queues %v are on one node", names)
	}
	stopStart(t, client)
	want, got := map[string]int{}, map[string]int{}
	for _, name := range names {
		q := stopQueue(t, client, name)
		stopPublish(t, q, "plain", "fails once", "dies", "rejected")
		if _, err := q.Publish(t.Context(), "later", xstreamq.WithDelay(50*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		for _, r := range q.PublishBatch(t.Context(), []xstreamq.Outgoing[string]{
			{Body: "batch"}, {Body: "batch, later", Options: []xstreamq.PublishOption{xstreamq.WithDelay(50 * time.Millisecond)}},
		}) {
			if r.Err != nil {
				t.Error(r.Err)
			}
		}
		for _, what := range []string{" plain", " fails once", " later", " batch", " batch, later", " failed", " rejected"} {
			want[name+what]++
		}
	}
	for range want {
		select {
		case body := <-handled:
			got[body]++
		case d := <-dead:
			got[d.Queue+" "+string(d.Reason)]++
		case <-time.After(clusterWait):
			t.Fatalf("waited in vain; so far: %v", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if err := client.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	clusterAllBlocked(t, c, 2*len(names))
	took, err := stopWithin(client, clusterWait)
	if err != nil || took > 4*time.Second { // a blocked read takes 5 s
		t.Errorf("Stop: %v after %v", err, took)
	}
	for _, name := range names {
		_, owner, _ := c.slot("{" + name + "}")
		left := stopLeft{
			Leased:      stopPending(t, rc, "{"+name+"}", "g"),
			RetryLeased: stopPending(t, rc, "{"+name+"}.g.retry", "g-retry"),
		}
		for key, n := range map[string]*int64{"XLEN {q}.g.retry": &left.Retry, "ZCARD {q}.g.delayed": &left.Backoff, "XLEN {q}.g.dlq": &left.Dead} {
			reply := owner.do(strings.Fields(strings.Replace(key, "{q}", "{"+name+"}", 1))...)
			*n, _ = reply.AsInt64()
		}
		if diff := cmp.Diff(stopLeft{Dead: 2}, left); diff != "" {
			t.Errorf("what is left of %s (-want +got):\n%s", name, diff)
		}
	}
}

// P9: a slot that moves to another node while a worker's reads of it are blocked: the worker follows, a message is handled within
// a few seconds, and Healthy says so.
func TestSlotMovesUnderABlockedRead(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	client := stopNew(t, c.client(), xstreamq.Config{})
	q := stopQueue(t, client, "q")
	handled := make(chan string, 10)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		handled <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{})
	stopStart(t, client)
	stopPublish(t, q, "before")
	if got := stopTake(t, "a message", handled); got != "before" {
		t.Errorf("got %q", got)
	}
	for _, body := range []string{"there", "and back"} {
		clusterAllBlocked(t, c, 2)
		c.move("{q}")
		moved := time.Now()
		redistest.WaitFor(t, clusterWait, "a publish", func() bool {
			_, err := q.Publish(t.Context(), body)
			return err == nil
		})
		if got := stopTake(t, "a message after the move", handled); got != body {
			t.Errorf("got %q, want %q", got, body)
		}
		if took := time.Since(moved); took > 10*time.Second {
			t.Errorf("%q was handled %v after the move", body, took)
		}
		redistest.WaitFor(t, clusterWait, "health", func() bool { return client.Healthy(t.Context()) == nil })
	}
	took, err := stopWithin(client, clusterWait)
	if err != nil || took > 4*time.Second {
		t.Errorf("Stop: %v after %v", err, took)
	}
}

// clusterAllBlocked waits until so many blocked reads are under way.
func clusterAllBlocked(t *testing.T, c *cluster, n int) {
	t.Helper()
	redistest.WaitFor(t, clusterWait, "idle readers", func() bool {
		blocked := 0
		for _, node := range c.nodes {
			for line := range strings.SplitSeq(node.text("CLIENT", "LIST"), "\n") {
				if strings.Contains(line, " cmd=xreadgroup ") && strings.Contains(line, " flags=b ") {
					blocked++
				}
			}
		}
		return blocked == n
	})
}
