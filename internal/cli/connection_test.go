package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// flagged returns the connection of a command line.
func flagged(t *testing.T, args ...string) *connection {
	t.Helper()
	c := &connection{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return c
}

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestWhereRedisIs(t *testing.T) {
	urlFile, marked := file(t, "  redis://of-file:1 \r\n"), file(t, "\ufeffredis://of-file:1\r\n")
	for _, c := range []struct {
		name string
		env  string
		args []string
		want string
	}{
		{"default", "", nil, "localhost:6379"},
		{"environment", "redis://of-env:1", nil, "of-env:1"},
		{"file before environment", "redis://of-env:1", []string{"--url-file", urlFile}, "of-file:1"},
		{"file with a byte order mark", "", []string{"--url-file", marked}, "of-file:1"},
		{"flag before environment", "redis://of-env:1", []string{"--url", "redis://of-flag:1"}, "of-flag:1"},
		{"unix", "", []string{"--url", "unix:///run/redis.sock"}, "/run/redis.sock"},
		{"cluster", "", []string{"--url", "redis://a:1?addr=b:2"}, "a:1 b:2"},
	} {
		t.Setenv(urlVariable, c.env)
		opts, err := flagged(t, c.args...).options(t.Context())
		if got := strings.Join(opts.InitAddress, " "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
		}
	}
}

func TestSentinelURL(t *testing.T) {
	t.Parallel()
	opts, err := flagged(t, "--url", "rediss://s1:26379?addr=s2:26379&master_set=main").options(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if opts.Sentinel.MasterSet != "main" || opts.TLSConfig == nil || opts.Sentinel.TLSConfig == nil {
		t.Errorf("master set %q, TLS %v, of the sentinels %v", opts.Sentinel.MasterSet, opts.TLSConfig, opts.Sentinel.TLSConfig)
	}
}

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		env, want string
		args      []string
	}{
		{"", "", nil},
		{"env:", "env:", nil},
		{"env:", "flag:", []string{"--prefix", "flag:"}},
		{"env:", "", []string{"--prefix", ""}},
	} {
		t.Setenv(prefixVariable, c.env)
		conn := flagged(t, c.args...)
		if conn.prefix != c.want {
			t.Errorf("%+v: %q", c, conn.prefix)
		}
		if shown := conn.flags.FlagUsages(); strings.Contains(shown, "env:") {
			t.Errorf("the help shows the environment:\n%s", shown)
		}
	}
}

func TestWrongConnectionFlags(t *testing.T) {
	t.Parallel()
	pem := file(t, "nothing")
	for _, args := range [][]string{
		{"--url", "redis://a", "--url-file", pem},
		{"--url", ""},
		{"--url", "redis://%zz"},
		{"--url", "http://localhost"},
		{"--url-file", file(t, "localhost:6379")},
		{"--url-file", file(t, "")},
		{"--url-file", file(t, "redis://a\nredis://b\n")},
		{"--url-file", file(t, strings.Repeat(" ", urlFileMost)+"redis://a")},
		{"--cert", pem},
		{"--key", pem},
		{"--url", "unix:///run/redis.sock", "--cacert", pem},
	} {
		if _, err := flagged(t, args...).options(t.Context()); !errors.As(err, new(usageError)) {
			t.Errorf("%q: %v, want a usage error", args, err)
		}
	}
}

// Each error names the file and what is wrong with it, and shows nothing of what is in it.
func TestUnusableFiles(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	none := filepath.Join(t.TempDir(), "none")
	for what, args := range map[string][]string{
		"no such file":      {"--url-file", none},
		"is empty":          {"--url-file", file(t, " \n")},
		"more than one":     {"--url-file", file(t, "redis://:"+secret+"@h\nredis://:"+secret+"@i\n")},
		"cannot be used":    {"--url-file", file(t, "redis://:"+secret+"%zz@h")},
		"--cacert: open":    {"--cacert", none},
		"no certificate in": {"--cacert", file(t, secret)},
		"--cert":            {"--cert", file(t, secret), "--key", file(t, secret)},
	} {
		_, err := flagged(t, args...).options(t.Context())
		if err == nil || !strings.Contains(err.Error(), what) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: %v, want it to say %q", args, err, what)
		}
		if err != nil && !strings.Contains(err.Error(), args[1]) {
			t.Errorf("%q: %v does not name the file", args, err)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := redistest.Start(t, redistest.Options{Args: []string{"--unixsocket", socket}})
	do(t, redistest.Dial(t, server.URL()), "HSET", "xstreamq:registry", "orders/shipping", "{}")
	if got := run(t, "ls", "--json", "--url", "unix://"+socket); got.code != 0 || !strings.Contains(got.stdout, "shipping") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	got := run(t, "ls", "--url", "unix://"+socket+"x")
	if got.code != 1 || notOneLine(got.stderr) != "" || !strings.Contains(got.stderr, socket+"x") {
		t.Errorf("no such socket: %+v", got)
	}
}

// silentServer takes connections and never answers.
func silentServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return "redis://" + listener.Addr().String()
}

// A server that says nothing holds a command for its --timeout and no longer, whether it was so from the beginning or became so.
func TestSilentServerHoldsNobody(t *testing.T) {
	t.Parallel()
	paused := redistest.Start(t, redistest.Options{})
	paused.Pause()
	for name, url := range map[string]string{"paused": paused.URL(), "silent": silentServer(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			got := run(t, "ls", "--url", url, "--timeout", "300ms")
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %s", took)
			}
			if got.code != 1 || got.stdout != "" || notOneLine(got.stderr) != "" || !strings.Contains(got.stderr, "--timeout") ||
				!strings.Contains(got.stderr, "300ms") {
				t.Errorf("%+v; want an error that names --timeout", got)
			}
			began = time.Now()
			got = run(t, "__complete", "--url", url, "depth", "")
			if took := time.Since(began); took > completeTimeout+2*time.Second || got.code != 0 || got.stdout != ":4\n" {
				t.Errorf("completion: %+v after %s; want nothing after %s", got, took, completeTimeout)
			}
		})
	}
}

// The connection for questions about Redis itself is closed in about a second, also while Redis owes an answer.
func TestServerConnectionClosesInTime(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{})
	a := &app{ctx: t.Context(), conn: *flagged(t, "--url", redis.URL())}
	client, err := a.server()
	if err != nil {
		t.Fatal(err)
	}
	redis.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := client.Do(ctx, client.B().Ping().Build()).Error(); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("PING to a silent server: %v", err)
	}
	began := time.Now()
	client.Close()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	redis.Resume() // its goroutines end then
}

// A server that goes away shows at once: nothing is tried again until the time is up.
func TestServerLostShowsAtOnce(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{})
	do(t, redistest.Dial(t, redis.URL()), "HSET", "xstreamq:registry", "orders/shipping", "{}")
	a := &app{ctx: t.Context(), conn: *flagged(t, "--url", redis.URL())}
	client, err := a.open()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Registered(t.Context()); err != nil {
		t.Fatal(err)
	}
	redis.Kill()
	began := time.Now()
	_, err = client.Registered(t.Context())
	if took := time.Since(began); err == nil || errors.Is(err, context.DeadlineExceeded) || took > 3*time.Second {
		t.Errorf("%v after %s", err, took)
	}
}

func TestOpeningEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	late, closed := make(chan string), make(chan string)
	cancel()
	_, err := opening(ctx, []string{"h:1"}, func() (string, error) { return <-late, nil }, func(s string) { closed <- s })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	late <- "client"
	if got := <-closed; got != "client" {
		t.Errorf("closed %q", got)
	}
}
