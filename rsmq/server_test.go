package rsmq

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// replicas are two servers that can copy from each other.
func replicas(t *testing.T) (first, second *redistest.Server) {
	t.Helper()
	o := redistest.Options{Args: []string{"--repl-diskless-sync-delay", "0"}}
	return redistest.Start(t, o), redistest.Start(t, o)
}

// follow makes the server of a client a copy of another one, and waits until it is.
func follow(t *testing.T, c *Client, other *redistest.Server) {
	t.Helper()
	host, port, err := net.SplitHostPort(other.Addr())
	if err != nil {
		t.Fatal(err)
	}
	run(t, c, "REPLICAOF", host, port)
	redistest.WaitFor(t, 20*time.Second, "the copy", func() bool {
		reply, err := run(t, c, "ROLE").ToArray()
		if err != nil || len(reply) < 4 {
			return false
		}
		state, _ := reply[3].ToString()
		return state == "connected"
	})
}

// writes are the operations that change something.
var writes = []string{"create", "drop", "set", "send", "receive", "pop", "delete", "extend"}

// After a failover the client that is left on a replica is refused, and nothing is in doubt; when its server leads again, it goes on.
func TestReplica(t *testing.T) {
	t.Parallel()
	first, second := replicas(t)
	c, elsewhere := over(t, redistest.Dial(t, first.URL()), Config{}), over(t, redistest.Dial(t, second.URL()), Config{})
	create(t, c, "q", QueueOptions{})
	id := send(t, c, "q", "before")[0]
	follow(t, elsewhere, first)
	run(t, elsewhere, "REPLICAOF", "NO", "ONE")
	follow(t, c, second)
	for _, name := range writes {
		if err := operations(t.Context(), c, id)[name](); redisCode(err) != "READONLY" || errors.Is(err, ErrUncertain) || lasting(err) {
			t.Errorf("%s on a replica: %v", name, err)
		}
	}
	if a := attributes(t, c, "q"); a.Messages != 1 {
		t.Errorf("a replica says %+v", a)
	}
	send(t, elsewhere, "q", "after")
	redistest.WaitFor(t, 20*time.Second, "the copy of the message", func() bool { return attributes(t, c, "q").Messages == 2 })
	run(t, c, "REPLICAOF", "NO", "ONE")
	ms, err := c.ReceiveMessages(t.Context(), "q", 10, ReceiveOptions{})
	if err != nil || len(ms) != 2 || ms[0].ID != id || ms[1].Body != "after" {
		t.Errorf("received %+v: %v", ms, err)
	}
}

// A server that loads its data refuses, and nothing is in doubt; a worker waits for it.
func TestLoading(t *testing.T) {
	t.Parallel()
	if redistest.Major(t, redistest.Client(t)) < 7 {
		t.Skip("SKIPPED: this server cannot be told to load slowly")
	}
	server := redistest.Start(t, redistest.Options{Args: []string{
		"--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no",
	}})
	c := opened(t, server.URL(), Config{})
	create(t, c, "q", QueueOptions{})
	id := send(t, c, "q", "kept")[0]
	run(t, c, "EVAL", "for i = 1, 150 do redis.call('SET', 'k' .. i, string.rep('x', 1000)) end", "0")
	run(t, c, "SAVE")
	server.Kill()
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart() }()
	redistest.WaitFor(t, 20*time.Second, "LOADING", func() bool {
		return redisCode(c.redis.Do(t.Context(), c.redis.B().Arbitrary("EXISTS").Keys("x").Build()).Error()) == "LOADING"
	})
	for _, name := range writes {
		if err := operations(t.Context(), c, id)[name](); redisCode(err) != "LOADING" || errors.Is(err, ErrUncertain) || lasting(err) {
			t.Errorf("%s while the server loads: %v", name, err)
		}
	}
	handled := make(chan Message, 1)
	working(t, c, handInto(handled), WorkerOptions{Intervals: []time.Duration{time.Millisecond}})
	if m := <-handled; m.ID != id {
		t.Errorf("handled %+v", m)
	}
	if err := <-restarted; err != nil {
		t.Error(err)
	}
}

// A worker that a failover leaves on a replica says so, and goes on when its server leads again: also a handler's success is then
// written, or its message comes again.
func TestWorkerFailover(t *testing.T) {
	t.Parallel()
	first, second := replicas(t)
	c, elsewhere := over(t, redistest.Dial(t, first.URL()), Config{}), over(t, redistest.Dial(t, second.URL()), Config{})
	create(t, c, "q", QueueOptions{})
	send(t, c, "q", "during")
	handled, refused := make(chan Message, 100), make(chan error, 1000)
	begun, release := make(chan struct{}, 10), make(chan struct{})
	working(t, c, func(_ context.Context, m Message) error {
		begun <- struct{}{}
		<-release
		handled <- m
		return nil
	}, WorkerOptions{Invisible: 200 * time.Millisecond, Timeout: -1, MaxReceiveCount: -1, Events: WorkerEvents{Error: func(err error, _ *Message) {
		select {
		case refused <- err:
		default:
		}
	}}})
	<-begun
	follow(t, elsewhere, first)
	run(t, elsewhere, "REPLICAOF", "NO", "ONE")
	follow(t, c, second)
	close(release)
	if err := <-refused; redisCode(err) != "READONLY" {
		t.Error(err)
	}
	send(t, elsewhere, "q", "after")
	redistest.WaitFor(t, 20*time.Second, "the copy of the message", func() bool { return attributes(t, c, "q").Messages == 2 })
	run(t, c, "REPLICAOF", "NO", "ONE")
	redistest.WaitFor(t, 20*time.Second, "an empty queue", func() bool { return attributes(t, c, "q").Messages == 0 })
	counts := map[string]int{}
	for len(handled) > 0 {
		counts[(<-handled).Body]++
	}
	if counts["during"] < 2 || counts["after"] != 1 {
		t.Errorf("handled %v", counts)
	}
}
