package xstreamq

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisconn"
)

// dialOf returns the caller's own dial, or nil.
func dialOf(opts *rueidis.ClientOption) redisconn.Dial {
	old := opts.DialFn // deprecated, but callers have it
	if opts.DialCtxFn != nil || old == nil {
		return opts.DialCtxFn
	}
	return func(_ context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		return old(addr, dialer, config)
	}
}
