package rsmq

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/redisurl"
)

// slowDial makes connections, and while it is held none: it waits then, whatever its context says.
type slowDial struct {
	began chan struct{}

	mu    sync.Mutex
	hold  chan struct{} // nil: not held
	conns []net.Conn
}

func (d *slowDial) dial(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
	d.mu.Lock()
	hold := d.hold
	d.mu.Unlock()
	if hold != nil {
		d.began <- struct{}{}
		<-hold
	}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conns = append(d.conns, conn)
	return conn, err
}

// holdAndCut breaks all connections and holds new ones; release lets them be made.
func (d *slowDial) holdAndCut() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hold = make(chan struct{})
	for _, conn := range d.conns {
		conn.Close()
	}
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		close(d.hold)
		d.hold = nil
	})
}

// A call that waits for the dial of another call ends with its own context.
func TestCallEndsDuringDialOfAnother(t *testing.T) {
	t.Parallel()
	opts, err := redisurl.Parse(redistest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	d := &slowDial{began: make(chan struct{}, 1)}
	opts.DialCtxFn, opts.DisableCache, opts.AlwaysPipelining = d.dial, true, true
	rc, err := rueidis.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rc.Close)
	c := over(t, rc, Config{Namespace: redistest.Prefix(t)})
	create(t, c, "q", QueueOptions{})
	release := d.holdAndCut()
	defer release()
	first := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		for {
			if _, err := c.SendMessage(ctx, "q", "m", SendOptions{}); err == nil || ctx.Err() != nil {
				first <- err
				return
			}
		}
	}()
	<-d.began
	for name := range operations(c, t.Context(), someID) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := operations(c, ctx, someID)[name](); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
	release()
	if err := <-first; err != nil {
		t.Errorf("the call that dialed: %v", err)
	}
}

// askedClient tells of each call when it begins.
type askedClient struct {
	rueidis.Client
	asked chan struct{}
}

func (c *askedClient) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	c.asked <- struct{}{}
	return c.Client.Do(ctx, cmd)
}

func (c *askedClient) Dedicate() (rueidis.DedicatedClient, func()) {
	c.asked <- struct{}{}
	return c.Client.Dedicate()
}

// Close returns in time, whatever the server does, and so do the calls under way.
func TestCloseOfSilentConnection(t *testing.T) {
	t.Parallel()
	const limit = 4 * time.Second // a call or a dial by itself takes 5s to give up
	for name, cut := range map[string]bool{"silent": false, "dialing": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, redistest.URL(t))
			c, err := Open(proxy.URL(), Config{Namespace: redistest.Prefix(t)})
			if err != nil {
				t.Fatal(err)
			}
			create(t, c, "q", QueueOptions{})
			proxy.BlackHole()
			if cut {
				proxy.Cut()
			}
			began := time.Now()
			asked := &askedClient{Client: c.redis, asked: make(chan struct{}, 100)}
			c.redis = asked
			sent, subscribed := make(chan error), make(chan error)
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
			defer cancel()
			go func() {
				_, err := c.SendMessage(ctx, "q", "m", SendOptions{})
				sent <- err
			}()
			go func() { subscribed <- c.Subscribe(ctx, "q", func(int64) {}) }()
			for range 2 {
				<-asked.asked
			}
			c.Close()
			if err := <-sent; err == nil {
				t.Error("a silent server took a message")
			}
			if err := <-subscribed; !errors.Is(err, ErrClosed) {
				t.Errorf("Subscribe: %v", err)
			}
			if took := time.Since(began); took > limit {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Close closes the connection that Open made, and no other.
func TestClose(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	c.Close()
	create(t, c, "q", QueueOptions{})
	own, err := Open(redistest.URL(t), Config{Namespace: redistest.Prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	create(t, own, "q", QueueOptions{})
	for range 2 {
		own.Close()
	}
	for name, op := range operations(own, t.Context(), someID) {
		if err := op(); !errors.Is(err, ErrClosed) || errors.Is(err, ErrUncertain) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestWrongConfig(t *testing.T) {
	t.Parallel()
	if _, err := New(nil, Config{}); err == nil {
		t.Error("New takes no client")
	}
	if _, err := New(redistest.Client(t), Config{Namespace: "a", NoNamespace: true}); err == nil {
		t.Error("a namespace and none")
	}
	if _, err := Open(redistest.URL(t), Config{Namespace: "a", NoNamespace: true}); err == nil {
		t.Error("Open: a namespace and none")
	}
	_, err := Open("redis://user:s3cret@127.0.0.1:1", Config{})
	if err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
}

func TestTagged(t *testing.T) {
	t.Parallel()
	for namespace, want := range map[string]bool{
		"{a}": true, "x{a}y": true, "{a}{b}": true, "{{a}": true, "": false, "rsmq": false, "{}": false, "{}{a}": false, "}{": false, "{a": false,
	} {
		if tagged(namespace) != want {
			t.Errorf("%q: %v", namespace, !want)
		}
	}
}
