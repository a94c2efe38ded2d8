package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// An address that is left: its connections break, a dial under way ends, and none is made for the time that was said. Others stay.
func TestLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := New()
		defer c.Close()
		peers := map[string]net.Conn{}
		dial := c.Keeping(func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if _, again := peers[addr]; again && ctx.Value(hanging{}) != nil {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			ours, theirs := net.Pipe()
			peers[addr] = theirs
			return ours, nil
		})
		for _, addr := range []string{"a", "b"} {
			if _, err := dial(t.Context(), addr, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		hung := make(chan error)
		go func() {
			_, err := dial(context.WithValue(t.Context(), hanging{}, true), "a", nil, nil)
			hung <- err
		}()
		synctest.Wait()
		began := time.Now()
		c.Leave("a", time.Second)
		if err := <-hung; err == nil {
			t.Error("a dial to it went on")
		}
		if _, err := peers["a"].Read(make([]byte, 1)); err == nil {
			t.Error("a connection to it stays")
		}
		_, err := dial(t.Context(), "a", nil, nil)
		if op := (*net.OpError)(nil); !errors.As(err, &op) || op.Op != "dial" {
			t.Errorf("a new dial to it: %v", err)
		}
		if n := len(c.open); n != 2 { // of a, whose owner has not closed it yet, and of b
			t.Errorf("%d connections are kept", n)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s", took)
		}
		go func() { _, _ = peers["b"].Write([]byte("x")) }()
		for conn := range c.open {
			if conn.addr == "b" {
				if _, err := conn.Read(make([]byte, 1)); err != nil {
					t.Errorf("another address: %v", err)
				}
			}
		}
		time.Sleep(time.Second)
		if _, err := dial(t.Context(), "a", nil, nil); err != nil {
			t.Errorf("after its time: %v", err)
		}
	})
}

type hanging struct{}
