package cli

import (
	"bufio"
	"io"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// everyCommand is how each command that asks Redis is called on the group g of the queue orders.
var everyCommand = map[string][]string{
	"ls":          {"orders"},
	"depth":       {"orders", "g"},
	"pending":     {"orders", "g"},
	"consumers":   {"orders", "g"},
	"lag":         {"orders", "g"},
	"peek":        {"orders", "g"},
	"publish":     {"orders", "body"},
	"work":        {"orders", "--group", "g", "--timeout", "2s", "--", "cat"},
	"cancel":      {"orders", "d1735689600000-9f86d081884c7d65"},
	"dlq ls":      {"orders", "g"},
	"dlq show":    {"orders", "g", "1735689600000-0"},
	"dlq redrive": {"orders", "g", "--yes"},
	"dlq purge":   {"orders", "g", "--yes"},
	"dlq top":     {"orders", "g"},
	"compact":     {"orders"},
	"forget":      {"orders", "g", "--yes"},
	"health":      {"orders", "g"},
	"doctor":      nil,

	"rsmq create":       {"-q", "orders"},
	"rsmq send":         {"-q", "orders", "body"},
	"rsmq receive":      {"-q", "orders"},
	"rsmq pop":          {"-q", "orders"},
	"rsmq delete":       {"-q", "orders", "fzr4l5uu8rA8cYOoLq9vC5kDH1xiUvOj"},
	"rsmq visibility":   {"-q", "orders", "fzr4l5uu8rA8cYOoLq9vC5kDH1xiUvOj", "1"},
	"rsmq listqueues":   nil,
	"rsmq count":        {"-q", "orders"},
	"rsmq stats":        {"-q", "orders"},
	"rsmq attributes":   {"-q", "orders", "vt", "1"},
	"rsmq purge":        {"-q", "orders", "--yes"},
	"rsmq delete-queue": {"-q", "orders", "--yes"},
	"rsmq migrate":      {"orders", "--to", "orders", "--yes"},
	"rsmq serve":        {"--listen", "127.0.0.1:0", "--timeout", "2s"},
}

// needNoRedis are those that have nothing to ask.
var needNoRedis = []string{"demo", "demo-worker", "version", "help", "completion"}

func TestEveryCommandIsListed(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&app{})
	var walk func(cmd *cobra.Command, path string)
	walk = func(cmd *cobra.Command, path string) {
		if path = strings.TrimSpace(path + " " + cmd.Name()); slices.Contains(needNoRedis, path) {
			return
		}
		for _, sub := range cmd.Commands() {
			walk(sub, path)
		}
		if _, ok := everyCommand[path]; !ok && !cmd.HasSubCommands() {
			t.Errorf("%s is in neither list", path)
		}
	}
	for _, cmd := range root.Commands() {
		walk(cmd, "")
	}
}

// failing is how many commands fails runs at the same time.
const failing = 4

// fails runs every command, in text and as JSON, and checks that each ends with code 1 and one line, which says all of want. Those
// that report what is wrong besides (health, doctor, ls) may do so on stdout. skip names commands that do not fail. It waits for
// no other test to end, since what it asks may not stay as it is.
func fails(t *testing.T, url string, skip []string, want ...string) {
	t.Helper()
	slots := make(chan struct{}, failing)
	var running sync.WaitGroup
	for name, args := range everyCommand {
		if slices.Contains(skip, name) {
			continue
		}
		for _, format := range [][]string{nil, {"--json"}} {
			line := slices.Concat(strings.Fields(name), []string{"--url", url}, format, args)
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				began := time.Now()
				got := run(t, line...)
				checkFailure(t, name, got, want)
				if wrong := notJSONLines([]byte(got.stdout)); format != nil && wrong != "" {
					t.Errorf("%q: stdout %s", line, wrong)
				}
				if took := time.Since(began); took > 8*time.Second {
					t.Errorf("%q took %s", line, took)
				}
			})
		}
	}
	running.Wait()
}

func checkFailure(t *testing.T, name string, got outcome, want []string) {
	t.Helper()
	said := got.stderr
	switch name {
	case "health", "doctor", "ls":
		said += got.stdout
	case "work": // logs besides
		lines := strings.SplitAfter(got.stderr, "\n")
		said = lines[max(0, len(lines)-2)]
		fallthrough
	default:
		if wrong := notOneLine(said); wrong != "" {
			t.Errorf("%s: stderr %s", name, wrong)
		}
	}
	if got.code != 1 {
		t.Errorf("%s: exit code %d, want 1", name, got.code)
	}
	for _, part := range want {
		if !strings.Contains(said, part) {
			t.Errorf("%s: no %q in stdout %q, stderr %q", name, part, got.stdout, got.stderr)
		}
	}
	if text := got.stdout + got.stderr; strings.Contains(text, "s3cret") || strings.Contains(text, "goroutine ") || strings.Contains(text, "panic") {
		t.Errorf("%s: stdout %q, stderr %q", name, got.stdout, got.stderr)
	}
}

func TestServerDown(t *testing.T) {
	t.Parallel()
	fails(t, "redis://user:s3cret@127.0.0.1:1", nil, "127.0.0.1:1", "connection refused", "--url")
}

// A URL that cannot be one is a mistake in the command line, of every command.
func TestWrongURL(t *testing.T) {
	t.Parallel()
	for name, args := range everyCommand {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, format := range [][]string{nil, {"--json"}} {
				got := run(t, slices.Concat(strings.Fields(name), []string{"--url", "redis://user:s3cret#@127.0.0.1:1"}, format, args)...)
				if got.code != 2 || got.stdout != "" || notOneLine(got.stderr) != "" {
					t.Errorf("%+v; want 2 and one line", got)
				}
				for _, part := range []string{"--url: the Redis URL", "percent-encode", "--help"} {
					if !strings.Contains(got.stderr, part) {
						t.Errorf("no %q in %q", part, got.stderr)
					}
				}
				if strings.Contains(got.stderr, "s3cret") {
					t.Errorf("the password is shown: %q", got.stderr)
				}
			}
		})
	}
}

func TestPasswordMissingOrWrong(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--requirepass", "another"}})
	fails(t, server.URL(), nil, "NOAUTH", "--url-file")
	wrong := strings.Replace(server.URL(), "redis://", "redis://default:s3cret@", 1)
	fails(t, wrong, nil, "WRONGPASS", "password")
}

// do sends a command that must succeed.
func do(t *testing.T, client rueidis.Client, words ...string) {
	t.Helper()
	if err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).Error(); err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", words, err)
	}
}

func TestLoading(t *testing.T) {
	t.Parallel()
	if redistest.Major(t, redistest.Client(t)) < 7 {
		t.Skip("SKIPPED: this server cannot be told to load slowly")
	}
	// With 3,000 keys of 1 KB it reads for half a minute, and answers after each of them.
	server := redistest.Start(t, redistest.Options{Args: []string{
		"--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no",
	}})
	client := redistest.Dial(t, server.URL())
	do(t, client, "EVAL", `for i = 1, 3000 do redis.call('SET', 'k' .. i, string.rep('x', 1000)) end`, "0")
	do(t, client, "SAVE")
	client.Close()
	server.Kill()
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart() }()
	redistest.WaitFor(t, 10*time.Second, "LOADING", func() bool { return ask(server.Addr(), "PING") == "-LOADING" })
	fails(t, server.URL(), nil, "LOADING", "try again")
	ask(server.Addr(), "CONFIG SET key-load-delay 0") // enough of that
	if err := <-restarted; err != nil {
		t.Error(err)
	}
}

// ask returns the first word that a server answers, or "".
func ask(addr, words string) string {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(conn, words+"\r\n"); err != nil {
		return ""
	}
	answer, _ := bufio.NewReader(conn).ReadString('\n')
	word, _, _ := strings.Cut(answer, " ")
	return word
}

// Strings are where streams and sets belong.
func TestWrongType(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	client := redistest.Dial(t, server.URL())
	for _, key := range []string{
		"{orders}", "{orders}.delayed", "{orders}.g.retry", "{orders}.g.dlq", "{orders}.g.delayed", "rsmq:orders", "rsmq:orders:Q", "rsmq:QUEUES",
	} {
		do(t, client, "SET", key, "text")
	}
	// These two ask for no queue.
	fails(t, server.URL(), []string{"doctor", "rsmq listqueues", "rsmq serve"}, "orders", "TYPE")
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	client := redistest.Dial(t, server.URL())
	do(t, client, "XADD", "{orders}", "*", "body", "x")
	do(t, client, "XGROUP", "CREATE", "{orders}", "g", "0")
	do(t, client, "ACL", "SETUSER", "guest", "on", ">s3cret", "~nothing", "+@all")
	url := strings.Replace(server.URL(), "redis://", "redis://guest:s3cret@", 1)
	fails(t, url, []string{"doctor"}, "NOPERM", "ACL SETUSER")
}

// A command that the user may not run in a script is not put down to a key, nor to the place in the script.
func TestNoPermissionInScript(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	client := redistest.Dial(t, server.URL())
	do(t, client, "XADD", "{orders}", "*", "body", "x")
	do(t, client, "XGROUP", "CREATE", "{orders}", "g", "0")
	do(t, client, "ACL", "SETUSER", "guest", "on", ">s3cret", "~*", "+@all", "-zcard", "-xtrim", "-zcount")
	url := strings.Replace(server.URL(), "redis://", "redis://guest:s3cret@", 1)
	place := regexp.MustCompile(`key \{orders\}|@user_script|script: [0-9a-f]{8}|f_[0-9a-f]{8}`)
	for _, name := range []string{"lag", "depth", "compact", "forget", "cancel"} {
		got := run(t, slices.Concat([]string{name, "--url", url}, everyCommand[name])...)
		checkFailure(t, name, got, []string{`queue "orders"`, "lacks a permission", "docs/operations.md", "ACL LOG"})
		if part := place.FindString(got.stderr); part != "" {
			t.Errorf("%s: %q in %q", name, part, got.stderr)
		}
	}
}

// A server that hangs up at once may want TLS. One that does so later has died.
func TestClosedConnectionIsTakenForTLSAtOnceAlone(t *testing.T) {
	t.Parallel()
	target := redistest.URL(t)
	for name, c := range map[string]struct {
		fault func(*redistest.Proxy)
		want  string
	}{
		"at once": {(*redistest.Proxy).Refuse, "rediss://"},
		"later":   {func(p *redistest.Proxy) { p.CutAfterRequest([]byte("EVALSHA")) }, "was Redis stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := redistest.NewProxy(t, target)
			c.fault(proxy)
			got := run(t, "lag", "orders", "g", "--url", proxy.URL(), "--prefix", redistest.Prefix(t))
			checkFailure(t, name, got, []string{c.want})
			if tls := strings.Contains(got.stderr, "TLS"); tls != (name == "at once") {
				t.Errorf("%q speaks of TLS: %v", got.stderr, tls)
			}
		})
	}
}

// A look that is interrupted ends at once, with code 1 and a word.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		cmd := command(t, "ls", "--url", "redis://"+listener.Addr().String())
		var stderr strings.Builder
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		conn, err := listener.Accept() // it runs, and waits for an answer
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		code := exitCode(t, cmd.Wait())
		if code != 1 || stderr.String() != "error: interrupted\n" || time.Since(began) > 3*time.Second {
			t.Errorf("%s: exit code %d after %s, stderr %q", sig, code, time.Since(began), stderr.String())
		}
	}
}
