// Package redisconn ends what a rueidis client waits for: connections whose server is silent, dials under way, and calls.
package redisconn

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Dial is rueidis.ClientOption.DialCtxFn.
type Dial = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error)

// Connections are those that one rueidis client has. It waits for the answers of a silent server when it is closed, and a dial under way
// outlives it: Close ends both.
type Connections struct {
	ctx    context.Context // ends when no more may be made
	cancel context.CancelFunc

	mu    sync.Mutex
	open  map[*connection]struct{} // also those that are being dialled
	asked time.Time                // when AskAgain last did
	left  map[string]time.Time     // until when an address may not be dialled
}

// connection is one of them.
type connection struct {
	net.Conn // nil while it is being dialled
	of       *Connections
	addr     string             // as it was dialled
	abort    context.CancelFunc // ends the dial
}

// New returns an account of connections that has none yet.
func New() *Connections {
	c := &Connections{open: map[*connection]struct{}{}, left: map[string]time.Time{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Keeping returns a dial that keeps account of what it makes. A nil dial is the usual one.
func (c *Connections) Keeping(dial Dial) Dial {
	if dial == nil {
		dial = dialTCP
	}
	return func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.ctx, cancel)()
		kept := &connection{of: c, addr: addr, abort: cancel}
		if err := c.begin(kept); err != nil {
			return nil, err
		}
		conn, err := dial(ctx, addr, dialer, config)
		if err != nil {
			c.forget(kept)
			return nil, err
		}
		return c.keep(kept, conn)
	}
}

func dialTCP(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return dialer.DialContext(ctx, "tcp", addr)
	}
	secure := tls.Dialer{NetDialer: dialer, Config: config}
	return secure.DialContext(ctx, "tcp", addr)
}

// begin refuses a dial to an address that was left.
func (c *Connections) begin(kept *connection) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if until, ok := c.left[kept.addr]; ok {
		if time.Now().Before(until) {
			return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s is passed over for a moment: it is silent, or not up to date", kept.addr)}
		}
		delete(c.left, kept.addr)
	}
	c.open[kept] = struct{}{}
	return nil
}

func (c *Connections) keep(kept *connection, conn net.Conn) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.open[kept]; !ok || c.ctx.Err() != nil {
		delete(c.open, kept)
		_ = conn.Close()
		return nil, rueidis.ErrClosing
	}
	kept.Conn = conn
	return kept, nil
}

func (c *Connections) forget(kept *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, kept)
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

// cut ends the connection, or its dial, without the farewell of TLS, for which a silent peer would be waited for.
func (c *connection) cut() {
	c.abort()
	if c.Conn == nil {
		return
	}
	raw := c.Conn
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	_ = raw.Close()
}

// Leave cuts the connections to an address, dials under way included, and refuses new ones for a time. Whatever waits for an answer
// from there fails at once.
func (c *Connections) Leave(addr string, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left[addr] = time.Now().Add(wait)
	for conn := range c.open {
		if conn.addr == addr {
			conn.cut()
		}
	}
}

// Refuse lets no more connections be made, also by dials that are under way. Those that there are stay.
func (c *Connections) Refuse() { c.cancel() }

// Close cuts all connections, and lets none be made any more.
func (c *Connections) Close() {
	c.Refuse()
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		conn.cut()
	}
	clear(c.open)
}
