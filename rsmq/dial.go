package rsmq

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"
)

// dialFunc is rueidis.ClientOption.DialCtxFn.
type dialFunc = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error)

// dialWhile returns a dial that makes no more connections when closed has ended, also one that is under way then, and whose
// connections are cut when cutting ends. A rueidis client would wait for a silent server, and a dial would outlive it. A nil dial is the
// usual one.
func dialWhile(closed, cutting context.Context, dial dialFunc) dialFunc {
	if dial == nil {
		dial = dialTCP
	}
	return func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(closed, cancel)()
		raw, err := dial(ctx, addr, dialer, config)
		if err != nil {
			return nil, err
		}
		if closed.Err() != nil {
			_ = raw.Close()
			return nil, rueidis.ErrClosing
		}
		return &connection{raw, context.AfterFunc(cutting, func() { _ = raw.Close() })}, nil
	}
}

func dialTCP(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return dialer.DialContext(ctx, "tcp", addr)
	}
	secure := tls.Dialer{NetDialer: dialer, Config: config}
	return secure.DialContext(ctx, "tcp", addr)
}

// connection is one that can be cut.
type connection struct {
	net.Conn
	spare func() bool // it is not cut any more
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.spare()
	return c.Conn.Close()
}
