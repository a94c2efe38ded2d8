package rsmq

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// startSentinel starts a sentinel that watches a server under the name main, and returns its address.
func startSentinel(t *testing.T, watched *redistest.Server) string {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("SKIPPED, Sentinel is not tested: redis-server is not in PATH")
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	_ = taken.Close()
	_, of, err := net.SplitHostPort(watched.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor main 127.0.0.1 %s 1\nsentinel down-after-milliseconds main 500\n"+
		"sentinel failover-timeout main 3000\n", port, dir, of)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, config, "--sentinel")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	redistest.WaitFor(t, 20*time.Second, "the sentinel", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return addr
}

// Behind a sentinel, a client and a worker go on with the replica when the primary dies: what the replica had is not lost.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	primary := redistest.Start(t, redistest.Options{Args: []string{"--repl-diskless-sync-delay", "0"}})
	host, port, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	replica := redistest.Start(t, redistest.Options{Args: []string{"--replicaof", host + " " + port}})
	direct := over(t, redistest.Dial(t, replica.URL()), Config{})
	info := func(c *Client, section, part string) bool {
		text, _ := c.redis.Do(t.Context(), c.redis.B().Arbitrary("INFO", section).Build()).ToString()
		return strings.Contains(text, part)
	}
	redistest.WaitFor(t, 30*time.Second, "the replica", func() bool { return info(direct, "replication", "master_link_status:up") })
	sentinel := startSentinel(t, primary)
	watching := over(t, redistest.Dial(t, "redis://"+sentinel), Config{})
	redistest.WaitFor(t, 30*time.Second, "the sentinel to know the replica", func() bool { return info(watching, "sentinel", "slaves=1") })

	c := opened(t, "redis://"+sentinel+"?master_set=main", Config{})
	create(t, c, "q", QueueOptions{})
	send(t, c, "q", "before")
	if n, err := run(t, c, "WAIT", "1", "10000").AsInt64(); n != 1 || err != nil {
		t.Fatal(n, err)
	}
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
