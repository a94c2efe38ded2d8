package rsmq

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// startSentinel starts a sentinel that watches a server under the name main. A busy machine keeps a healthy server silent for a
// while, so it is patient until it is told otherwise.
func startSentinel(t *testing.T, watched *redistest.Server) *redistest.Server {
	t.Helper()
	_, of, err := net.SplitHostPort(watched.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := "sentinel monitor main 127.0.0.1 " + of + " 1\nsentinel down-after-milliseconds main 60000\nsentinel failover-timeout main 3000\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return redistest.Start(t, redistest.Options{Dir: dir, File: config, Args: []string{"--sentinel"}})
}

// Behind a sentinel, a client and a worker go on with the replica when the primary dies: what the replica had is not lost.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Options{Args: []string{"--repl-diskless-sync-delay", "0"}})
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica := redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host, port}})
	direct := over(t, redistest.Dial(t, replica.URL()), Config{})
	info := func(c *Client, section, part string) bool {
		text, _ := c.redis.Do(t.Context(), c.redis.B().Arbitrary("INFO", section).Build()).ToString()
		return strings.Contains(text, part)
	}
	redistest.WaitFor(t, 30*time.Second, "the replica", func() bool { return info(direct, "replication", "master_link_status:up") })
	sentinel := startSentinel(t, primary)
	watching := over(t, redistest.Dial(t, sentinel.URL()), Config{})
	redistest.WaitFor(t, 30*time.Second, "the sentinel to know the replica", func() bool { return info(watching, "sentinel", "slaves=1") })

	c := opened(t, sentinel.URL()+"?master_set=main", Config{})
	create(t, c, "q", QueueOptions{})
	send(t, c, "q", "before")
	if n, err := run(t, c, "WAIT", "1", "10000").AsInt64(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	run(t, watching, "SENTINEL", "SET", "main", "down-after-milliseconds", "500")
	primary.Kill()
	redistest.WaitFor(t, 60*time.Second, "the replica to take over", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.SendMessage(ctx, "q", "after", SendOptions{})
		return err == nil
	})
	handled := make(chan Message, 100)
	working(t, c, handInto(handled), WorkerOptions{})
	if m := <-handled; m.Body != "before" || m.ReceiveCount != 1 {
		t.Errorf("first %+v", m)
	}
	if m := <-handled; m.Body != "after" {
		t.Errorf("then %+v", m)
	}
	if a := attributes(t, direct, "q"); a.Sent < 2 {
		t.Errorf("the replica has %+v", a)
	}
}

// A server that says it is a replica: the news of a failover may have passed the client by, so it asks the sentinel again.
func TestSentinelIsAskedAgain(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Options{})
	sentinel := startSentinel(t, primary)
	watching := over(t, redistest.Dial(t, sentinel.URL()), Config{})
	direct := over(t, redistest.Dial(t, primary.URL()), Config{})
	create(t, direct, "q", QueueOptions{})
	for name, send := range map[string]func(*Client) error{
		"a call": func(c *Client) error { return c.CreateQueue(t.Context(), "other", QueueOptions{}) },
		"a shared call": func(c *Client) error {
			_, err := c.SendMessage(t.Context(), "q", "a message", SendOptions{})
			return err
		},
	} {
		run(t, direct, "REPLICAOF", "NO", "ONE")
		c := opened(t, sentinel.URL()+"?master_set=main", Config{})
		ids := func() []string {
			list, err := run(t, watching, "CLIENT", "LIST").ToString()
			if err != nil {
				t.Fatal(err)
			}
			return regexp.MustCompile(`(?m)^id=\d+`).FindAllString(list, -1)
		}
		before := ids()
		run(t, direct, "REPLICAOF", "127.0.0.1", "1")
		redistest.WaitFor(t, 30*time.Second, name+" that reaches a replica, and new connections to the sentinel", func() bool {
			if err := send(c); redisCode(err) != "READONLY" {
				return false
			}
			return slices.ContainsFunc(ids(), func(id string) bool { return !slices.Contains(before, id) })
		})
		c.Close()
	}
}
