package xstreamq_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// startWithin calls Start with a deadline of d from now, and returns how long it took and its error.
func startWithin(c *xstreamq.Client, d time.Duration) (took time.Duration, err error) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	err = c.Start(ctx)
	return time.Since(began), err
}

// Start without Redis returns when its context ends, with what is wrong and with nothing running; once Redis is up a later Start
// succeeds.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, kind := range stopKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{AOF: "everysec"})
			proxy := redistest.NewProxy(t, server.URL())
			for _, name := range []string{"down", "silent"} {
				c := stopConnect(t, kind, proxy.URL(), xstreamq.Config{})
				q := stopQueue(t, c, "q")
				handled := make(chan string, 10)
				sub := stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
					handled <- m.Body
					return nil
				}, xstreamq.SubscribeOptions{})
				if name == "down" {
					server.Kill()
				} else {
					proxy.BlackHole()
					proxy.Cut()
				}
				took, err := startWithin(c, 500*time.Millisecond)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), `queue "q", group "g"`) {
					t.Errorf("%s: Start returned %v", name, err)
				}
				// A dial under way ends by itself.
				if took > 8*time.Second {
					t.Errorf("%s: Start took %v", name, took)
				}
				select {
				case <-readyIn(sub, 50*time.Millisecond):
					t.Errorf("%s: the subscription runs", name)
				default:
				}
				if name == "down" {
					if err := server.Restart(); err != nil {
						t.Fatal(err)
					}
				}
				proxy.Pass()
				proxy.Cut()
				if n := lifeExisting(t, redistest.Dial(t, server.URL())); name == "down" && n != 0 {
					t.Errorf("%s: %d keys exist after a Start that failed", name, n)
				}
				if _, err := startWithin(c, stopWait); err != nil {
					t.Fatalf("%s: Start once Redis was back: %v", name, err)
				}
				// The first command on each connection that was cut fails.
				redistest.WaitFor(t, stopWait, "a publish", func() bool {
					_, err := q.Publish(t.Context(), name)
					return err == nil
				})
				if got := stopTake(t, "a message", handled); got != name {
					t.Errorf("got %q", got)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// readyIn returns a channel that is closed when a subscription is ready within d; it waits for that long.
func readyIn(sub *xstreamq.Subscription, d time.Duration) <-chan struct{} {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	ready := make(chan struct{})
	if sub.Ready(ctx) == nil {
		close(ready)
	}
	return ready
}

func lifeExisting(t *testing.T, rc rueidis.Client) int64 {
	t.Helper()
	n, err := rc.Do(t.Context(), rc.B().Dbsize().Build()).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Stop ends a Start that waits for Redis: it returns ErrStopped at once, not at its own deadline.
func TestStopEndsAWaitingStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	c := stopConnect(t, "open", server.URL(), xstreamq.Config{})
	stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
	server.Kill()
	tries := standIn(t, server.Addr(), true)
	started := make(chan error, 1)
	go func() {
		_, err := startWithin(c, 5*time.Minute)
		started <- err
	}()
	stopTake(t, "Start to try", tries)
	if _, err := stopWithin(c, stopWait); err != nil {
		t.Errorf("Stop: %v", err)
	}
	if err := stopTake(t, "Start", started); !errors.Is(err, xstreamq.ErrStopped) {
		t.Errorf("Start: %v, want ErrStopped", err)
	}
}

// standIn listens in place of a server, hangs up on every connection or lets it wait for ever, and tells of the first.
func standIn(t *testing.T, addr string, hangUp bool) <-chan struct{} {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	first := make(chan struct{}, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if hangUp {
				_ = conn.Close()
			} else {
				defer conn.Close()
			}
			select {
			case first <- struct{}{}:
			default:
			}
		}
	}()
	return first
}

// Start waits while Redis loads its data, and then works.
func TestStartWhileRedisLoads(t *testing.T) {
	t.Parallel()
	if redistest.Major(t, redistest.Client(t)) < 7 {
		t.Skip("SKIPPED: this server cannot be told to load slowly")
	}
	server := redistest.Start(t, redistest.Options{Args: []string{
		"--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024", "--rdbcompression", "no",
	}})
	c := stopConnect(t, "open", server.URL(), xstreamq.Config{})
	q := stopQueue(t, c, "q")
	handled := make(chan string, 1)
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		handled <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{})
	rc, err := redistest.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	healthCommand(t, rc, "EVAL", `for i = 1, 300 do redis.call('SET', 'k' .. i, string.rep('x', 1000)) end return 1`, "0")
	healthCommand(t, rc, "SAVE")
	server.Kill()
	restarted := make(chan error, 1)
	go func() { restarted <- server.Restart() }()
	redistest.WaitFor(t, stopWait, "LOADING", func() bool {
		err := rc.Do(t.Context(), rc.B().Arbitrary("EXISTS").Keys("x").Build()).Error()
		return err != nil && strings.HasPrefix(err.Error(), "LOADING")
	})
	// While it loads a Start with little patience says so.
	if _, err := startWithin(c, time.Second); err == nil || !strings.Contains(err.Error(), "LOADING") {
		t.Errorf("Start while Redis loads: %v", err)
	}
	if _, err := startWithin(c, stopWait); err != nil {
		t.Fatalf("Start: %v", err)
	}
	stopPublish(t, q, "x")
	stopTake(t, "a message", handled)
	if err := stopTake(t, "the restart", restarted); err != nil {
		t.Error(err)
	}
}

// The time of a Start runs out while Redis is silent: its error says what Redis had said before.
func TestStartSaysWhatWasInTheWay(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	admin := redistest.Dial(t, server.URL())
	proxy := redistest.NewProxy(t, server.URL())
	c := stopConnect(t, "open", proxy.URL(), xstreamq.Config{})
	stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
	healthCommand(t, admin, "REPLICAOF", "127.0.0.1", "1")
	failed := make(chan error, 1)
	go func() {
		_, err := startWithin(c, 3*time.Second)
		failed <- err
	}()
	redistest.WaitFor(t, stopWait, "a second attempt", func() bool {
		info, err := admin.Do(t.Context(), admin.B().Info().Section("commandstats").Build()).ToString()
		_, calls, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
		return err == nil && calls != "" && !strings.HasPrefix(calls, "1,")
	})
	proxy.BlackHole()
	err := stopTake(t, "the end of Start", failed)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("Start returned %v", err)
	}
}

// What waiting cannot cure is returned at once, and a later Start works when it was mended.
func TestStartReturnsPermanentErrorsAtOnce(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	admin := redistest.Dial(t, server.URL())
	for _, tt := range []struct {
		name  string
		spoil []string
		mend  []string
		want  string
	}{
		{"queue of another type", []string{"SET", "{q}", "x"}, []string{"DEL", "{q}"}, "WRONGTYPE"},
		{"retry stream of another type", []string{"SET", "{q}.g.retry", "x"}, []string{"DEL", "{q}.g.retry"}, "WRONGTYPE"},
		{"registry of another type", []string{"SET", "xstreamq:registry", "x"}, []string{"DEL", "xstreamq:registry"}, "WRONGTYPE"},
		{"command forbidden", []string{"ACL", "SETUSER", "default", "-xgroup"}, []string{"ACL", "SETUSER", "default", "+@all"}, "NOPERM"},
		{"command forbidden in a script", []string{"ACL", "SETUSER", "default", "-hset"}, []string{"ACL", "SETUSER", "default", "+@all"}, " run "},
		{"keys forbidden", []string{"ACL", "SETUSER", "default", "resetkeys", "~other*"}, []string{"ACL", "SETUSER", "default", "~*"}, "NOPERM"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := stopConnect(t, "open", server.URL(), xstreamq.Config{})
			stopSubscribe(t, stopQueue(t, c, "q"), stopNothing, xstreamq.SubscribeOptions{})
			healthCommand(t, admin, tt.spoil...)
			took, err := startWithin(c, stopWait)
			healthCommand(t, admin, tt.mend...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Start: %v, want %s", err, tt.want)
			}
			if took > 15*time.Second {
				t.Errorf("Start took %v", took)
			}
			if _, err := startWithin(c, stopWait); err != nil {
				t.Errorf("Start after it was mended: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			healthCommand(t, admin, "FLUSHALL")
		})
	}
}

// Errors of Open never show a password, whatever is wrong with the URL or the connection.
func TestOpenNeverShowsCredentials(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	server := redistest.Start(t, redistest.Options{Args: []string{"--requirepass", "right"}})
	at := server.Addr()
	for _, url := range []string{
		"redis://user:" + secret + "@" + at, // WRONGPASS
		"redis://:" + secret + "@127.0.0.1:1",
		"redis://:" + secret + "@" + at + "/x",
		"redis://:" + secret + "@" + at + "/0/1",
		"redis://:" + secret + "@" + at + "?db=x",
		"redis://:" + secret + "@" + at + "?dial_timeout=x",
		"redis://:" + secret + "@" + at + "?write_timeout=x",
		"rediss://:" + secret + "@" + at + "?skip_verify=x",
		"rediss://:" + secret + "@" + at + "?dial_timeout=500ms",
		"unix://:" + secret + "@/nowhere/redis.sock",
		"http://:" + secret + "@" + at,
		secret + "://" + at,
		"redis://:" + secret + "%zz@" + at,
		"redis://:" + secret + " @" + at,
		"redis://:" + secret + "\x00@" + at,
		"redis://user:" + secret + "[@" + at,
		"redis://user:x/" + secret + "@" + at,
		"redis://user:" + secret + "/x@" + at,
		"redis://user:1/" + secret + "@" + at + "/0",
		"redis://user:x?" + secret + "@" + at,
		"redis://user:x@" + secret + "#x@" + at,
		"redis://user:x@" + secret + "?x@" + at,
		"redis://user:x@" + secret + "/x@" + at,
		":" + secret + "@" + at,
		secret,
	} {
		c, err := xstreamq.Open(url, xstreamq.Config{})
		if err == nil {
			t.Errorf("%s was opened", url)
			_ = c.Close()
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("Open(%q): the error shows the secret: %v", url, err)
		}
	}
}
