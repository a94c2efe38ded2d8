package xstreamq_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// deafConn carries everything but the news that there is another master.
type deafConn struct{ net.Conn }

func (c deafConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !bytes.Contains(b[:n], []byte("+switch-master\r\n$")) {
			return n, err
		}
	}
}

// deafOptions are those of a client that misses the news of every failover.
func (r *sentinelRig) deafOptions() rueidis.ClientOption {
	var sentinels []string
	for _, s := range r.sentinels {
		sentinels = append(sentinels, s.Addr())
	}
	return rueidis.ClientOption{
		InitAddress: sentinels, Sentinel: rueidis.SentinelOption{MasterSet: sentinelSet}, DisableCache: true, AlwaysPipelining: true,
		DialCtxFn: func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err == nil && slices.Contains(sentinels, addr) {
				conn = deafConn{conn}
			}
			return conn, err
		},
	}
}

// P9: a client that missed the news of a failover is told by the old master that it is a replica, and asks the sentinels again: one
// that only publishes, and one that only consumes. A client of New cannot, and says that it is unhealthy.
func TestNewsOfFailoverMissed(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: a failover of which the old master learns late takes a quarter of a minute, and -short was asked for")
	}
	t.Parallel()
	r := newSentinelRig(t)
	cfg := xstreamq.Config{KeyPrefix: r.prefix, Logger: slog.New(slog.DiscardHandler)}
	open := func() (*xstreamq.Client, *xstreamq.Queue[string]) {
		c, err := xstreamq.OpenWith(r.deafOptions(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		q, err := xstreamq.NewQueue[string](c, faultQueue)
		if err != nil {
			t.Fatal(err)
		}
		return c, q
	}
	publisher, out := open()
	consumer, in := open()
	if _, err := in.Subscribe(faultGroup, r.runs.record(faultFlaky), xstreamq.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	stopStart(t, consumer)
	r.publish(out, "before")
	r.handled([]string{"before"})
	rc, err := rueidis.NewClient(r.deafOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rc.Close)
	lent := stopNew(t, rc, cfg)

	old := newFaultRig(t, r.master)
	r.failover()
	r.promoted()
	redistest.WaitFor(t, faultPatience, "the old master to be a replica", func() bool { return serverRole(old) == "slave" })
	demoted := time.Now()
	redistest.WaitFor(t, faultPatience, "a publish", func() bool {
		_, err := out.Publish(t.Context(), "after")
		return err == nil
	})
	t.Logf("published again %v after the old master was demoted", time.Since(demoted).Round(time.Millisecond))
	r.handled([]string{"after"})
	t.Logf("handled again %v after the old master was demoted", time.Since(demoted).Round(time.Millisecond))
	r.healthy(publisher)
	r.healthy(consumer)
	if err := lent.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a client that cannot heal says of itself: %v", err)
	}
}
