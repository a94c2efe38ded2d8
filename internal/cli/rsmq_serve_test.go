package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

// rsmqService is the command rsmq serve in a process of its own.
type rsmqService struct {
	cmd  *exec.Cmd
	url  string
	ns   string
	rest *bufio.Reader // what it says after its address
}

func serveRSMQ(t *testing.T, redis string, args ...string) *rsmqService {
	t.Helper()
	s := &rsmqService{ns: strings.TrimSuffix(redistest.Prefix(t), ":")}
	s.cmd = command(t, append([]string{"rsmq", "serve", "--listen", "127.0.0.1:0", "--url", redis, "--ns", s.ns}, args...)...)
	said, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = s.cmd.Wait() })
	s.rest = bufio.NewReader(said)
	line, err := s.rest.ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("it says %q, %v", line, err)
	}
	s.url = address
	return s
}

// ask returns the status and the body of an answer.
func (s *rsmqService) ask(t *testing.T, method, path, body string, header ...string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if request.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			request.Host = header[i+1]
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Errorf("%s %s: no JSON: %q", method, path, text)
	}
	return answer.StatusCode, string(text)
}

// ends waits for the process and returns its exit code and what it said at last.
func (s *rsmqService) ends(t *testing.T) (code int, said string) {
	t.Helper()
	rest, err := io.ReadAll(s.rest)
	if err != nil {
		t.Fatal(err)
	}
	return exitCode(t, s.cmd.Wait()), string(rest)
}

func TestRSMQServe(t *testing.T) {
	t.Parallel()
	s := serveRSMQ(t, redistest.URL(t), "--max-body", "2000", "--compat-status")
	for _, step := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/health", "", 200, `"healthy":true`},
		{"POST", "/queues/q", `{"vt":10}`, 200, `{"result":1}`},
		{"POST", "/messages/q", `{"message":"hello"}`, 200, `{"id":"`},
		{"GET", "/messages/q", "", 200, `"message":"hello","rc":1`},
		{"GET", "/messages/q", "", 200, `{}`},
		{"GET", "/queues/nothere", "", 500, `"name":"queueNotFound"`},
		{"POST", "/messages/q", `{"message":"` + strings.Repeat("x", 2000) + `"}`, 413, `"name":"bodyTooLarge"`},
		{"GET", "/nothere", "", 404, `"name":"notFound"`},
	} {
		if status, text := s.ask(t, step.method, step.path, step.body); status != step.status || !strings.Contains(text, step.want) {
			t.Errorf("%s %s: %d %s; want %d %s", step.method, step.path, status, text, step.status, step.want)
		}
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, said := s.ends(t); code != 0 || said != "" {
		t.Errorf("exit code %d, it says %q", code, said)
	}
}

// Without a token, a browser cannot be made to use the service by another site.
func TestRSMQServeRefusesOtherSites(t *testing.T) {
	t.Parallel()
	s := serveRSMQ(t, redistest.URL(t))
	host := strings.TrimPrefix(s.url, "http://")
	for _, c := range []struct {
		status int
		header []string
	}{
		{200, nil},
		{200, []string{"Origin", s.url, "Sec-Fetch-Site", "same-origin"}},
		{200, []string{"Host", "localhost:" + host[strings.LastIndex(host, ":")+1:]}},
		{200, []string{"Host", "[::1]:1"}},
		{403, []string{"Origin", "http://evil.example"}},
		{403, []string{"Origin", "null"}},
		{403, []string{"Sec-Fetch-Site", "cross-site"}},
		{403, []string{"Host", "rebound.example:8101"}},
	} {
		if status, text := s.ask(t, "GET", "/queues", "", c.header...); status != c.status {
			t.Errorf("%q: %d %s, want %d", c.header, status, text, c.status)
		}
	}
}

func TestRSMQServeWithToken(t *testing.T) {
	t.Parallel()
	const token = "0123456789abcdef"
	s := serveRSMQ(t, redistest.URL(t), "--token-file", file(t, token+"\n"))
	for _, c := range []struct {
		status int
		path   string
		header []string
	}{
		{401, "/queues", nil},
		{401, "/queues", []string{"Authorization", "Bearer wrong"}},
		{401, "/nothere", nil},
		{200, "/queues", []string{"Authorization", "Bearer " + token}},
		{200, "/queues", []string{"Authorization", "Bearer " + token, "Host", "queues.example", "Origin", "http://other.example"}},
		{200, "/health", nil},
	} {
		if status, text := s.ask(t, "GET", c.path, "", c.header...); status != c.status {
			t.Errorf("%s %q: %d %s, want %d", c.path, c.header, status, text, c.status)
		}
	}
}

// A request that is under way when the service is told to end gets its answer, and no other one is taken.
func TestRSMQServeEndsInOrder(t *testing.T) {
	t.Parallel()
	proxy := redistest.NewProxy(t, redistest.URL(t))
	s := serveRSMQ(t, proxy.URL())
	if status, text := s.ask(t, "POST", "/queues/q", ""); status != 200 {
		t.Fatal(status, text)
	}
	proxy.Delay(500 * time.Millisecond)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const body = `{"message":"last"}`
	// It is under way when the service asks for the rest of it.
	_, _ = io.WriteString(conn, "POST /messages/q HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Length: 18\r\n\r\n")
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("%q, %v", line, err)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 10*time.Second, "the service to listen no more", func() bool {
		other, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			other.Close()
		}
		return err != nil
	})
	_, _ = io.WriteString(conn, body)
	rest, _ := io.ReadAll(answers)
	if !bytes.Contains(rest, []byte("200 OK")) || !bytes.Contains(rest, []byte(`{"id":"`)) {
		t.Errorf("the answer: %q", rest)
	}
	if code, said := s.ends(t); code != 0 || said != "" {
		t.Errorf("exit code %d, it says %q", code, said)
	}
	client, err := rsmq.Open(redistest.URL(t), rsmq.Config{Namespace: s.ns})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if m, ok, err := client.PopMessage(t.Context(), "q"); err != nil || !ok || m.Body != "last" {
		t.Errorf("the queue holds %v %v, %v", m, ok, err)
	}
}

// It goes on through an outage of Redis, and says so meanwhile.
func TestRSMQServeThroughOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := serveRSMQ(t, server.URL())
	server.Stop()
	if status, text := s.ask(t, "GET", "/health", ""); status != 503 {
		t.Errorf("health is %d %s while Redis is down", status, text)
	}
	if status, text := s.ask(t, "GET", "/queues", ""); status != 503 {
		t.Errorf("the answer is %d %s while Redis is down", status, text)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 15*time.Second, "the service to be healthy again", func() bool {
		status, _ := s.ask(t, "GET", "/health", "")
		return status == 200
	})
}

// shortLimits are such that a test can wait for them.
var shortLimits = httpLimits{
	header: 200 * time.Millisecond, request: 400 * time.Millisecond, answer: time.Second, idle: 300 * time.Millisecond, ending: 200 * time.Millisecond,
}

// served is serveHTTP in this process.
func served(t *testing.T, handler http.HandlerFunc) (address string, end func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serveHTTP(ctx, listener, handler, io.Discard, shortLimits) }()
	end = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = end() })
	return listener.Addr().String(), end
}

// Clients that send slowly, or not at all, are cut off, while others are served.
func TestRSMQServeCutsSlowClients(t *testing.T) {
	t.Parallel()
	address, _ := served(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	for name, sent := range map[string]string{
		"says nothing":             "",
		"headers that never end":   "GET / HTTP/1.1\r\nHost: h\r\n",
		"a body that never ends":   "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nx",
		"idle after its request":   "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
		"chunks that never end":    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"headers that are too big": "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", maxHeader+8192),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.WriteString(conn, sent); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the connection was not cut: %v", err)
			}
		})
	}
}

// One that drips its headers byte by byte is cut off all the same.
func TestRSMQServeCutsDrippingClients(t *testing.T) {
	t.Parallel()
	address, _ := served(t, func(http.ResponseWriter, *http.Request) {})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	drip := time.NewTicker(20 * time.Millisecond)
	defer drip.Stop()
	header := []byte("GET / HTTP/1.1\r\nHost: h\r\nX: ")
	late := time.After(10 * time.Second)
	for i := 0; ; i++ {
		next := byte('x')
		if i < len(header) {
			next = header[i]
		}
		if _, err := conn.Write([]byte{next}); err != nil {
			return
		}
		select {
		case <-drip.C:
		case <-late:
			t.Fatal("the connection was not cut")
		}
	}
}

// A request that does not end in time is cut off, and that is an error.
func TestRSMQServeEndsDespiteStuckRequests(t *testing.T) {
	t.Parallel()
	reached, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	address, end := served(t, func(http.ResponseWriter, *http.Request) {
		close(reached)
		<-release
	})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-reached
	if err := end(); err == nil || !strings.Contains(err.Error(), "did not end within 200ms") {
		t.Errorf("it ended with %v", err)
	}
}
