package redistest

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// noAnswer is how long a test watches for bytes that must not come.
const noAnswer = 150 * time.Millisecond

// wire is a bare connection through a proxy, so that a test sees each byte and each end of a connection.
type wire struct {
	tb   testing.TB
	conn net.Conn
}

func connect(tb testing.TB, addr string) *wire {
	tb.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return &wire{tb: tb, conn: conn}
}

func (w *wire) send(command string) {
	w.tb.Helper()
	if _, err := io.WriteString(w.conn, command+"\r\n"); err != nil {
		w.tb.Fatalf("send %s: %v", command, err)
	}
}

// read returns what comes within the time, and the error that ended the wait.
func (w *wire) read(limit time.Duration) (string, error) {
	w.tb.Helper()
	if err := w.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		w.tb.Fatal(err)
	}
	buffer := make([]byte, 4<<10)
	n, err := w.conn.Read(buffer)
	return string(buffer[:n]), err
}

func (w *wire) wantReply(want string) {
	w.tb.Helper()
	got, err := w.read(10 * time.Second)
	if err != nil || got != want+"\r\n" {
		w.tb.Fatalf("reply: got %q, %v; want %q", got, err, want)
	}
}

func (w *wire) wantSilence() {
	w.tb.Helper()
	if got, err := w.read(noAnswer); !isTimeout(err) {
		w.tb.Fatalf("got %q, %v; want an open connection that carries nothing", got, err)
	}
}

func (w *wire) wantClosed() {
	w.tb.Helper()
	got, err := w.read(10 * time.Second)
	if err == nil || isTimeout(err) {
		w.tb.Fatalf("got %q, %v; want a closed connection", got, err)
	}
}

func isTimeout(err error) bool {
	var netErr net.Error
	return errors.As(err, &netErr) && netErr.Timeout()
}

// proxied puts a proxy in front of the shared server. It also returns a key to work with, and what reads that key past
// the proxy.
func proxied(tb testing.TB) (*Proxy, string, func() string) {
	tb.Helper()
	key := Prefix(tb) + "key"
	direct := Client(tb)
	return NewProxy(tb, URL(tb)), key, func() string { return get(tb, direct, key) }
}

func TestProxyPassesEverything(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	client := Dial(t, proxy.URL())
	set(t, client, key, "v")
	if got := get(t, client, key); got != "v" {
		t.Errorf("through the proxy: got %q, want %q", got, "v")
	}
	if got := stored(); got != "v" {
		t.Errorf("past the proxy: got %q, want %q", got, "v")
	}
}

func TestProxyKeepsTheRestOfTheURL(t *testing.T) {
	t.Parallel()
	proxy := NewProxy(t, "redis://user:secret@redis.invalid:6379/3")
	if want := "redis://user:secret@" + proxy.Addr() + "/3"; proxy.URL() != want {
		t.Errorf("got %s, want %s", proxy.URL(), want)
	}
	if _, err := ListenProxy("rediss://redis.invalid:6379"); err == nil {
		t.Error("a proxy before a TLS server was made, though it cannot read the requests")
	}
}

func TestProxyCutClosesLiveConnectionsOnly(t *testing.T) {
	t.Parallel()
	proxy, _, _ := proxied(t)
	first := connect(t, proxy.Addr())
	first.send("PING")
	first.wantReply("+PONG")

	proxy.Cut()
	first.wantClosed()
	second := connect(t, proxy.Addr())
	second.send("PING")
	second.wantReply("+PONG")
}

func TestProxyRefuseClosesOldAndNew(t *testing.T) {
	t.Parallel()
	proxy, _, _ := proxied(t)
	first := connect(t, proxy.Addr())
	first.send("PING")
	first.wantReply("+PONG")

	proxy.Refuse()
	first.wantClosed()
	connect(t, proxy.Addr()).wantClosed()

	proxy.Pass()
	third := connect(t, proxy.Addr())
	third.send("PING")
	third.wantReply("+PONG")
}

func TestProxyBlackHoleCarriesNothing(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	old := connect(t, proxy.Addr())
	old.send("PING")
	old.wantReply("+PONG")

	proxy.BlackHole()
	fresh := connect(t, proxy.Addr())
	fresh.send("PING")
	old.send("SET " + key + " v")
	old.wantSilence()
	fresh.wantSilence()
	if got := stored(); got != "" {
		t.Errorf("a request came through the black hole: the key is %q", got)
	}

	proxy.Pass()
	old.wantReply("+OK")
	fresh.wantReply("+PONG")
}

func TestProxyBlackHoleHoldsReplies(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	proxy := NewProxy(t, server.Addr())
	direct := Dial(t, server.URL())
	reader := connect(t, proxy.Addr())
	reader.send("BLPOP list 0")
	WaitFor(t, 10*time.Second, "the blocked read to reach the server", func() bool {
		info, err := direct.Do(t.Context(), direct.B().Info().Section("clients").Build()).ToString()
		return err == nil && strings.Contains(info, "blocked_clients:1")
	})

	proxy.BlackHole()
	if err := direct.Do(t.Context(), direct.B().Lpush().Key("list").Element("v").Build()).Error(); err != nil {
		t.Fatal(err)
	}
	reader.wantSilence()
	proxy.Pass()
	reader.wantReply("*2\r\n$4\r\nlist\r\n$1\r\nv")
}

func TestProxyDelaysRepliesWithoutSlowingTheFlow(t *testing.T) {
	t.Parallel()
	const delay, requests = 100 * time.Millisecond, 20
	proxy, _, _ := proxied(t)
	proxy.Delay(delay)
	client := connect(t, proxy.Addr())

	start := time.Now()
	client.send("PING")
	client.wantReply("+PONG")
	if took := time.Since(start); took < delay {
		t.Errorf("the reply took %v, want at least %v", took, delay)
	}

	start = time.Now()
	for range requests {
		client.send("PING")
	}
	replies := make([]byte, requests*len("+PONG\r\n"))
	if _, err := io.ReadFull(client.conn, replies); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > requests*delay/2 {
		t.Errorf("%d replies took %v: their delays of %v add up", requests, took, delay)
	}
}

func TestProxyPassReleasesDelayedReplies(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	proxy.Delay(time.Hour)
	client := connect(t, proxy.Addr())
	client.send("SET " + key + " v")
	WaitFor(t, 10*time.Second, "the request to be executed", func() bool { return stored() == "v" })
	client.wantSilence()
	proxy.Pass()
	client.wantReply("+OK")
}

func TestProxySwallowsRepliesOfExecutedRequests(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	idle := connect(t, proxy.Addr())
	idle.send("PING")
	idle.wantReply("+PONG")
	client := connect(t, proxy.Addr())

	proxy.SwallowReplies()
	client.send("SET " + key + " v")
	WaitFor(t, 10*time.Second, "the request to be executed", func() bool { return stored() == "v" })
	client.wantSilence()

	proxy.Pass()
	client.wantClosed() // its next reply would be taken for the swallowed one
	idle.send("PING")
	idle.wantReply("+PONG")
}

func TestProxyCutsAfterTheRequest(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	other := connect(t, proxy.Addr())
	fired := proxy.CutAfterRequest([]byte("SET " + key))
	client := connect(t, proxy.Addr())
	client.send("PING")
	client.wantReply("+PONG")
	client.send("SET " + key + " v")
	client.wantClosed()
	<-fired
	if got := stored(); got != "v" {
		t.Errorf("the request was not executed: the key is %q", got)
	}

	// Once only, and for that connection only.
	other.send("SET " + key + " w")
	other.wantReply("+OK")
}

func TestProxyCutsBeforeTheRequest(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	other := connect(t, proxy.Addr())
	fired := proxy.CutBeforeRequest([]byte("SET " + key))
	client := connect(t, proxy.Addr())
	client.send("PING")
	client.wantReply("+PONG")
	client.send("SET " + key + " v")
	client.wantClosed()
	<-fired
	if got := stored(); got != "" {
		t.Errorf("the request was executed: the key is %q", got)
	}

	other.send("SET " + key + " w")
	other.wantReply("+OK")
}

func TestProxyFindsAMatchInTwoPieces(t *testing.T) {
	t.Parallel()
	proxy, key, _ := proxied(t)
	fired := proxy.CutBeforeRequest([]byte("SET " + key))
	client := connect(t, proxy.Addr())
	if _, err := io.WriteString(client.conn, "PING\r\nSET "); err != nil {
		t.Fatal(err)
	}
	client.wantReply("+PONG") // so the first piece has passed
	client.send(key + " v")
	client.wantClosed()
	<-fired
}

func TestProxyCutsAfterARequestThatBlocks(t *testing.T) {
	t.Parallel()
	proxy, key, _ := proxied(t)
	fired := proxy.CutAfterRequest([]byte("BLPOP"))
	client := connect(t, proxy.Addr())
	client.send("BLPOP " + key + " 0")
	client.wantClosed()
	<-fired
}

func TestProxyMatchesTheRequestsOfAClient(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	client := Dial(t, proxy.URL())
	fired := proxy.CutAfterRequest([]byte("INCR"))
	incr := func() error {
		return client.Do(context.Background(), client.B().Incr().Key(key).Build()).Error()
	}
	if err := incr(); err == nil {
		t.Error("the client got a reply over a connection that was cut")
	}
	<-fired
	if got := stored(); got != "1" {
		t.Errorf("the counter is %q, want 1", got)
	}
	if err := incr(); err != nil {
		t.Errorf("after the cut: %v", err)
	}
}

func TestProxyOutlivesItsTarget(t *testing.T) {
	t.Parallel()
	server := Start(t, Options{})
	proxy := NewProxy(t, server.URL())
	first := connect(t, proxy.Addr())
	first.send("PING")
	first.wantReply("+PONG")

	server.Kill()
	first.wantClosed()
	connect(t, proxy.Addr()).wantClosed()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	second := connect(t, proxy.Addr())
	second.send("PING")
	second.wantReply("+PONG")
}

func TestProxyClosesInEveryMode(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*Proxy){
		"pass":       (*Proxy).Pass,
		"refuse":     (*Proxy).Refuse,
		"black hole": (*Proxy).BlackHole,
		"swallow":    (*Proxy).SwallowReplies,
		"delay":      func(p *Proxy) { p.Delay(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, _, _ := proxied(t)
			old := connect(t, proxy.Addr())
			old.send("PING")
			old.wantReply("+PONG")
			fault(proxy)
			fresh := connect(t, proxy.Addr())
			_, _ = io.WriteString(fresh.conn, "PING\r\n") // a refused connection may be closed already
			_, _ = io.WriteString(old.conn, "PING\r\n")

			proxy.Close()
			for _, w := range []*wire{old, fresh} {
				// A reply may still have come through.
				if err := w.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, w.conn); isTimeout(err) {
					t.Error("a connection is open after Close")
				}
			}
			if conn, err := net.Dial("tcp", proxy.Addr()); err == nil {
				_ = conn.Close()
				t.Error("a closed proxy accepts connections")
			}
		})
	}
}
