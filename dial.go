package xstreamq

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// dialFunc is rueidis.ClientOption.DialCtxFn.
type dialFunc = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error)

// dialOf returns the caller's own dial, or nil.
func dialOf(opts *rueidis.ClientOption) dialFunc {
	old := opts.DialFn // deprecated, but callers have it
	if opts.DialCtxFn != nil || old == nil {
		return opts.DialCtxFn
	}
	return func(_ context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		return old(addr, dialer, config)
	}
}

// connections are those that the rueidis client of Open has. Close cuts them: a rueidis client waits for the answers of a silent
// server when it is closed, and a dial under way outlives it.
type connections struct {
	ctx    context.Context // ends when no more may be made
	cancel context.CancelFunc

	mu   sync.Mutex
	open map[*connection]struct{}
	cut  time.Time // when cutOthers last did
}

// connection is one of them.
type connection struct {
	net.Conn
	of   *connections
	addr string // as it was dialled
}

func newConnections() *connections {
	c := &connections{open: map[*connection]struct{}{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// keeping returns a dial that keeps account of what it makes. A nil dial is the usual one.
func (c *connections) keeping(dial dialFunc) dialFunc {
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

func (c *connections) keep(conn net.Conn, addr string) (net.Conn, error) {
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

// cutOthers cuts the connections that lead anywhere but to addr, and does nothing if it just did: what is made anew takes a while.
func (c *connections) cutOthers(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.cut) < askEvery {
		return
	}
	c.cut = time.Now()
	for conn := range c.open {
		if conn.addr != addr {
			_ = conn.Conn.Close()
		}
	}
}

// close cuts all connections, and lets none be made any more.
func (c *connections) close() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		raw := conn.Conn
		if secure, ok := raw.(*tls.Conn); ok {
			raw = secure.NetConn() // without a farewell that a silent peer does not take
		}
		_ = raw.Close()
	}
	clear(c.open)
}
