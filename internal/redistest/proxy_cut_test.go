package redistest

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// send3 sends three requests in one packet; the second is the one that tests cut at.
func send3(w *wire, key string) { w.send("ECHO one\r\nAPPEND " + key + " 1234567890\r\nECHO three") }

// all reads until the connection is closed, or nothing more comes.
func (w *wire) all(limit time.Duration) (got string, open bool) {
	w.tb.Helper()
	if err := w.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		w.tb.Fatal(err)
	}
	data, err := io.ReadAll(w.conn)
	return string(data), isTimeout(err)
}

func TestProxyCutsAtAReply(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cut  Cut
		want string
	}{
		"within": {WithinReply, "$3\r\none\r\n:1"}, // of ":10\r\n"
		"after":  {AfterReply, "$3\r\none\r\n:10\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, key, stored := proxied(t)
			other, client := connect(t, proxy.Addr()), connect(t, proxy.Addr())
			fired := proxy.CutAt(tt.cut, "APPEND", key)
			send3(client, key)
			if got, open := client.all(10 * time.Second); got != tt.want || open {
				t.Errorf("got %q, open: %v; want %q and a closed connection", got, open, tt.want)
			}
			<-fired
			if got := stored(); got != "1234567890" {
				t.Errorf("the key is %q: the request was not executed once", got)
			}
			// Once only, and for that connection only.
			other.send("APPEND " + key + " 1")
			other.wantReply(":11")
		})
	}
}

func TestProxySwallowsOneReplyAndKeepsTheConnection(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	other, client := connect(t, proxy.Addr()), connect(t, proxy.Addr())
	fired := proxy.CutAt(SwallowReply, "APPEND")
	send3(client, key)
	<-fired
	client.send("APPEND " + key + " 1")
	WaitFor(t, 10*time.Second, "a request behind it to be executed", func() bool { return len(stored()) == 11 })
	if got, open := client.all(noAnswer); got != "$3\r\none\r\n" || !open {
		t.Errorf("got %q, open: %v; want the reply to what was sent before, and an open connection", got, open)
	}
	other.send("PING")
	other.wantReply("+PONG")
	proxy.Pass()
	client.wantClosed() // its next reply would be taken for the swallowed one
	other.send("PING")
	other.wantReply("+PONG")
}

// A cut at the reply of a read that blocks comes when the read is answered.
func TestProxyCutsAtTheReplyOfARequestThatBlocks(t *testing.T) {
	t.Parallel()
	proxy, key, _ := proxied(t)
	other, client := connect(t, proxy.Addr()), connect(t, proxy.Addr())
	fired := proxy.CutAt(WithinReply, "BLPOP")
	client.send("BLPOP " + key + " 0")
	client.wantSilence()
	other.send("RPUSH " + key + " abc")
	<-fired
	reply := "*2\r\n$" + strconv.Itoa(len(key)) + "\r\n" + key + "\r\n$3\r\nabc\r\n"
	if got, open := client.all(10 * time.Second); got != reply[:len(reply)/2] || open {
		t.Errorf("got %q, open: %v; want half of %q and a closed connection", got, open, reply)
	}
}

func TestProxyTakesRequestsApart(t *testing.T) {
	t.Parallel()
	set := "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\n\r\n*1\r\n"
	for _, tt := range []struct {
		data string
		want int
	}{
		{"", 0},
		{"PING", 0},
		{"PING\r\n", 6},
		{"\r\nPING\r\n", 2},
		{"*0\r\n", 4},
		{"*1\r\n$4\r\nPING\r\n", 14},
		{set, len(set)},
		{set + set, len(set)},
		{"*x\r\nno request", 14},
		{"*1\r\nno size\r\n", 13},
		{"*1\r\n$-1\r\n", 9},
		{"*-1\r\n", 5},
	} {
		if got := requestLen([]byte(tt.data)); got != tt.want {
			t.Errorf("requestLen(%q) = %d, want %d", tt.data, got, tt.want)
		}
	}
	for n := range len(set) {
		if got := requestLen([]byte(set[:n])); got != 0 {
			t.Errorf("requestLen(%q) = %d: it is not whole", set[:n], got)
		}
	}
}

func TestProxyCutsAtARequestWithAllTheParts(t *testing.T) {
	t.Parallel()
	proxy, key, stored := proxied(t)
	client := connect(t, proxy.Addr())
	fired := proxy.CutAt(BeforeRequest, "SET", "needle")
	client.send("SET " + key + " a")
	client.wantReply("+OK")
	client.send("ECHO needle")
	client.wantReply("$6\r\nneedle")
	client.send("SET " + key + " " + strings.Repeat("x", 200_000) + "needle")
	client.wantClosed()
	<-fired
	if got := stored(); got != "a" {
		t.Errorf("the request was executed: the key is %.20q", got)
	}
}

// A connection that carries no requests in the clear passes byte by byte, whatever the bytes are: TLS has no lines to wait for.
func TestProxyPassesWhatIsNoRequest(t *testing.T) {
	t.Parallel()
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	go func() {
		if conn, err := target.Accept(); err == nil {
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	conn, err := net.Dial("tcp", NewProxy(t, target.Addr().String()).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, piece := range []string{"\x16\x03\x01", "*3", "letters", "\r\n*1\r\n", "$"} {
		if _, err := io.WriteString(conn, piece); err != nil {
			t.Fatal(err)
		}
		back := make([]byte, len(piece))
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, back); err != nil || string(back) != piece {
			t.Fatalf("%q came back as %q: %v", piece, back, err)
		}
	}
}
