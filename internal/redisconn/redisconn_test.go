package redisconn

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
)

// A call ends with its context, or with the limit where that has no deadline, also when what it waits for goes on.
func TestCallEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := func(context.Context) (int, error) {
			<-release
			return 1, nil
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for ctx, want := range map[context.Context]time.Duration{soon: time.Second, context.WithoutCancel(soon): 5 * time.Second} {
			began := time.Now()
			if _, err := Call(ctx, 5*time.Second, stuck); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > want {
				t.Errorf("%v after %s, want %s", err, time.Since(began), want)
			}
		}
		cause := errors.New("enough")
		ended, end := context.WithCancelCause(t.Context())
		end(cause)
		if _, err := Call(ended, time.Second, stuck); !errors.Is(err, cause) {
			t.Error(err)
		}
		close(release)
		if n, err := Call(t.Context(), time.Second, stuck); n != 1 || err != nil {
			t.Error(n, err)
		}
	})
}

// A change that was under way when its caller gave up is asked what it did, for a second; a deadline is kept, and nothing is begun late.
func TestChangeIsAskedWhatItDid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		after := func(d time.Duration) func(context.Context) (int, error) {
			return func(ctx context.Context) (int, error) {
				select {
				case <-time.After(d):
					return 1, nil
				case <-ctx.Done():
					return 0, context.Cause(ctx)
				}
			}
		}
		cause := errors.New("enough")
		cancelled := func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
			return ctx, func() { cancel(nil) }
		}
		bounded := func() (context.Context, func()) { return context.WithTimeout(t.Context(), 100*time.Millisecond) }
		for _, tt := range []struct {
			name   string
			begin  func() (context.Context, func())
			answer time.Duration
			want   error
			took   time.Duration
		}{
			{"answered at once", cancelled, 50 * time.Millisecond, nil, 50 * time.Millisecond},
			{"answered in the grace", cancelled, 900 * time.Millisecond, nil, 900 * time.Millisecond},
			{"not answered", cancelled, time.Hour, cause, 1100 * time.Millisecond},
			{"past the deadline", bounded, 900 * time.Millisecond, context.DeadlineExceeded, 100 * time.Millisecond},
			{"past the limit", func() (context.Context, func()) { return t.Context(), func() {} }, time.Hour, context.DeadlineExceeded, 5 * time.Second},
		} {
			ctx, end := tt.begin()
			began := time.Now()
			n, err := Change(ctx, 5*time.Second, after(tt.answer))
			if took := time.Since(began); !errors.Is(err, tt.want) || took != tt.took || (n == 1) != (tt.want == nil) {
				t.Errorf("%s: %d, %v after %s", tt.name, n, err, took)
			}
			end()
		}
		ended, end := context.WithCancelCause(t.Context())
		end(cause)
		begun := false
		if _, err := Change(ended, time.Second, func(context.Context) (int, error) { begun = true; return 1, nil }); !errors.Is(err, cause) || begun {
			t.Error(begun, err)
		}
	})
}

// Close cuts connections that nobody reads; Refuse ends a dial that is under way, and drops what it makes all the same.
func TestConnections(t *testing.T) {
	t.Parallel()
	secure, ours := silentTLS(t)
	began := make(chan struct{}, 1)
	late, other := net.Pipe()
	defer func() { _ = other.Close() }()
	dials := map[string]Dial{
		"made": func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return secure, nil },
		"late": func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			began <- struct{}{}
			<-ctx.Done()
			return late, nil
		},
	}
	c := New()
	if _, err := c.Keeping(dials["made"])(t.Context(), "", nil, nil); err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		_, err := c.Keeping(dials["late"])(t.Context(), "", nil, nil)
		result <- err
	}()
	<-began
	c.Refuse()
	if err := <-result; !errors.Is(err, rueidis.ErrClosing) {
		t.Errorf("a dial under way: %v", err)
	}
	if _, err := late.Write([]byte("x")); err == nil {
		t.Error("what it made is open")
	}
	if len(c.open) != 1 {
		t.Errorf("%d connections are open", len(c.open))
	}
	closed := time.Now()
	c.Close()
	if _, err := ours.Write([]byte("x")); err == nil || time.Since(closed) > 4*time.Second {
		t.Errorf("after %s: %v", time.Since(closed), err)
	}
}

// silentTLS returns a connection whose peer has shaken hands and now reads nothing, and what lies under the connection.
func silentTLS(t *testing.T) (secure *tls.Conn, raw net.Conn) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	issued := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(issued.Close)
	secure = tls.Client(ours, &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error)
	go func() {
		shaken <- tls.Server(theirs, &tls.Config{Certificates: issued.TLS.Certificates, SessionTicketsDisabled: true}).Handshake()
	}()
	if err := errors.Join(secure.Handshake(), <-shaken); err != nil {
		t.Fatal(err)
	}
	return secure, ours
}

// sentinelClient is one that takes a server for the master.
type sentinelClient struct {
	rueidis.Client
	master string
}

func (c *sentinelClient) Mode() rueidis.ClientMode { return rueidis.ClientModeSentinel }

func (c *sentinelClient) Nodes() map[string]rueidis.Client {
	return map[string]rueidis.Client{c.master: nil}
}

// AskAgain cuts the connection to a sentinel at once, also where that takes no farewell; not those to the master, and not twice in a row.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	c := New()
	t.Cleanup(c.Close)
	raw := map[string]net.Conn{}
	for _, addr := range []string{"sentinel", "master"} {
		secure, under := silentTLS(t)
		raw[addr] = under
		dial := func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return secure, nil }
		if _, err := c.Keeping(dial)(t.Context(), addr, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	isOpen := func(addr string) bool { return raw[addr].SetDeadline(time.Time{}) == nil }
	began := time.Now()
	c.AskAgain(&sentinelClient{master: "master"})
	if took := time.Since(began); took > 4*time.Second { // a farewell waits 5s
		t.Errorf("it took %s", took)
	}
	if isOpen("sentinel") || !isOpen("master") {
		t.Errorf("open: the sentinel's %v, the master's %v", isOpen("sentinel"), isOpen("master"))
	}
	c.AskAgain(&sentinelClient{master: "another"})
	if !isOpen("master") {
		t.Error("it cut again at once")
	}
}
