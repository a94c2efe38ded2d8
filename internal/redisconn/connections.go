// Package redisconn ends what a rueidis client waits for: connections whose server is silent, dials under way, and calls.
package redisconn

import (
	"context"
	"crypto/tls"
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
	open  map[*connection]struct{}
	asked time.Time // when AskAgain last did
}

// connection is one of them.
type connection struct {
	net.Conn
	of   *Connections
	addr string // as it was dialled
}

// New returns an account of connections that has none yet.
func New() *Connections {
	c := &Connections{open: map[*connection]struct{}{}}
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
		conn, err := dial(ctx, addr, dialer, config)
		if err != nil {
			return nil, err
		}
		return c.keep(conn, addr)
	}
}

func dialTCP(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return dialer.DialContext(ctx, "tcp", addr)
	}
	secure := tls.Dialer{NetDialer: dialer, Config: config}
	return secure.DialContext(ctx, "tcp", addr)
}

func (c *Connections) keep(conn net.Conn, addr string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		_ = conn.Close()
		return nil, rueidis.ErrClosing
	}
	kept := &connection{Conn: conn, of: c, addr: addr}
	c.open[kept] = struct{}{}
	return kept, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// cut ends the connection without the farewell of TLS, for which a silent peer would be waited for.
func (c *connection) cut() {
	raw := c.Conn
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	_ = raw.Close()
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
