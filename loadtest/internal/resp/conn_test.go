package resp

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func dial(t *testing.T, o Options) *Conn {
	t.Helper()
	c, err := Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestConnectionToRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--requirepass", "sesame"}})
	c := dial(t, Options{Addr: server.Addr(), Password: "sesame", DB: 3})
	for i := range 3 {
		c.Append([]byte("RPUSH"), []byte("list"), []byte(strings.Repeat("x", i)))
	}
	c.Append([]byte("LLEN"), []byte("other"), []byte("too many"))
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if v, err := c.Receive(); err != nil || v.Int != int64(i+1) {
			t.Errorf("reply %d is %+v, %v", i, v, err)
		}
	}
	if c.Pending() != 1 {
		t.Errorf("%d replies are pending", c.Pending())
	}
	if v, err := c.Receive(); err != nil || !strings.Contains(v.Err().Error(), "wrong number of arguments") {
		t.Errorf("the last reply is %+v, %v", v, err)
	}
	if v, err := c.Do("LINDEX", "list", "-1"); err != nil || v.Text != "xx" {
		t.Errorf("LINDEX: %+v, %v", v, err)
	}
	var refused ServerError
	if _, err := c.Do("NONSENSE"); !errors.As(err, &refused) {
		t.Errorf("NONSENSE: %v", err)
	}
	if _, err := Dial(t.Context(), Options{Addr: server.Addr(), Password: "wrong"}); err == nil || strings.Contains(err.Error(), "wrong\"") {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestSilentServerIsGivenUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := dial(t, Options{Addr: listener.Addr().String(), Timeout: 50 * time.Millisecond})
	if _, err := c.Do("PING"); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("PING: %v", err)
	}
}
