package xstreamq_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// What docs/operations.md says that Redis users need: here for a queue named q and the prefix "app:".
const (
	aclPublisherKeys = "~app:{q} ~app:{q}.delayed ~app:xstreamq:health"
	aclWorkerKeys    = "~app:{q}* ~app:xstreamq:registry ~app:xstreamq:health"

	aclPublisher = "+hello +ping +xadd +eval +evalsha +time +type +zadd"
	aclWorker    = aclPublisher + " +client|id +client|unblock +xreadgroup +xack +xclaim +xdel +xpending +xrange +xtrim +xlen" +
		" +xgroup|create +xgroup|delconsumer +xinfo|groups +xinfo|consumers +zrange +zrangebyscore +zrem +zmscore" +
		" +set +pttl +exists +hget +hset +hkeys"
)

// aclSkipped is what a standalone client tries and does without.
var aclSkipped = map[string]bool{
	"config|get": true, "cluster|slots": true, "cluster|shards": true, "client|setinfo": true,
	"config": true, "cluster": true, "client": true, // as Redis 6.2 names them
}

// A worker needs no more than the documented commands and keys, and all of these: nothing else it tries is denied, but for what
// is skipped without a word, and each of them it uses.
func TestMinimalACLOfAWorker(t *testing.T) {
	t.Parallel()
	server, admin := aclServer(t, aclWorkerKeys, aclWorker)
	var logged aclLog
	c := stopConnect(t, "open", aclURL(server), xstreamq.Config{
		KeyPrefix: "app:", CompactEvery: 50 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	aclWork(t, c)
	if text := logged.String(); strings.Contains(text, "NOPERM") || strings.Contains(text, "can't") {
		t.Errorf("the log names a missing permission:\n%s", text)
	}
	aclDenied(t, admin)
	aclUsed(t, admin, aclWorker)
}

// A process that only publishes, at once and with a delay, and checks its health, needs far less.
func TestMinimalACLOfAPublisher(t *testing.T) {
	t.Parallel()
	server, admin := aclServer(t, aclPublisherKeys, aclPublisher)
	c := stopConnect(t, "open", aclURL(server), xstreamq.Config{KeyPrefix: "app:"})
	q := stopQueue(t, c, "q")
	stopPublish(t, q, "a")
	if _, err := q.Publish(t.Context(), "b", xstreamq.WithDelay(time.Minute)); err != nil {
		t.Error(err)
	}
	for _, r := range q.PublishBatch(t.Context(), []xstreamq.Outgoing[string]{{Body: "c"}, {Body: "d"}}) {
		if r.Err != nil {
			t.Error(r.Err)
		}
	}
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	aclDenied(t, admin)
	aclUsed(t, admin, aclPublisher)
}

// A worker whose user may not run CLIENT UNBLOCK waits out a short blocked read at Stop, and loses nothing.
func TestStopWithoutUnblock(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"+client|id ", "+client|unblock "} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			server, _ := aclServer(t, aclWorkerKeys, strings.Replace(aclWorker, command, "", 1))
			c := stopConnect(t, "open", aclURL(server), xstreamq.Config{KeyPrefix: "app:"})
			q := stopQueue(t, c, "q")
			handled := make(chan string, 1)
			stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
				handled <- m.Body
				return nil
			}, xstreamq.SubscribeOptions{})
			stopStart(t, c)
			stopPublish(t, q, "x")
			stopTake(t, "a message", handled)
			took, err := stopWithin(c, stopWait)
			if err != nil || took > 4*time.Second {
				t.Errorf("Stop returned %v after %v", err, took)
			}
		})
	}
}

func aclServer(t *testing.T, keys, commands string) (*redistest.Server, rueidis.Client) {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	admin := redistest.Dial(t, server.URL())
	user := strings.Fields("ACL SETUSER app reset on >secret resetchannels " + keys + " " + commands)
	healthCommand(t, admin, user...)
	return server, admin
}

func aclURL(server *redistest.Server) string { return "redis://app:secret@" + server.Addr() }

// aclWork lets a worker do everything that a worker does.
func aclWork(t *testing.T, c *xstreamq.Client) {
	t.Helper()
	q := stopQueue(t, c, "q")
	var seen stopSeen
	dead := make(chan xstreamq.DeadMessage, 1)
	held := make(chan string, 20)
	again := make(chan struct{})
	stopSubscribe(t, q, func(ctx context.Context, m *xstreamq.Message[string]) error {
		seen.note(m)
		switch {
		case m.Body == "retried" && m.Retries == 0:
			return errors.New("not now")
		case m.Body == "dead":
			return xstreamq.DeadLetter(errors.New("never"))
		case m.Body == "lost" && m.LostLeases == 0: // MaxExtension gives it up
			<-again
		case m.Body == "lost":
			close(again)
		case m.Body == "held":
			held <- m.Body
			<-xstreamq.Draining(ctx)
		}
		return nil
	}, xstreamq.SubscribeOptions{
		Concurrency: 4, Prefetch: 10, VisibilityTimeout: 300 * time.Millisecond, MaxExtension: 300 * time.Millisecond,
		Dedupe: time.Minute, RetryMaxLen: 1000, Backoff: xstreamq.Backoff{Initial: 10 * time.Millisecond},
		OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { dead <- d },
	})
	stopStart(t, c)
	if _, err := q.Publish(t.Context(), "later", xstreamq.WithDelay(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	stopPublish(t, q, "plain", "retried", "dead", "lost")
	if d := stopTake(t, "a dead letter", dead); string(d.Body) != "dead" {
		t.Errorf("dead letter %q", d.Body)
	}
	stopTake(t, "a message whose lease was lost", again)
	redistest.WaitFor(t, stopWait, "every message", func() bool {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return len(seen.runs["plain"]) == 1 && len(seen.runs["later"]) == 1 && len(seen.runs["retried"]) == 2
	})
	if err := c.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
	for range 10 {
		stopPublish(t, q, "held")
	}
	stopTake(t, "a handler that is held", held)
	if _, err := stopWithin(c, stopWait); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// aclDenied fails the test for each command or key that the user was denied and that is not skipped.
func aclDenied(t *testing.T, admin rueidis.Client) {
	t.Helper()
	entries, err := admin.Do(t.Context(), admin.B().Arbitrary("ACL", "LOG", "1000").Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		m, err := e.AsMap()
		if err != nil {
			t.Fatal(err)
		}
		text := func(key string) string {
			v := m[key]
			s, _ := v.ToString()
			return s
		}
		if text("username") == "app" && !aclSkipped[text("object")] {
			t.Errorf("denied: %s %q in %s", text("reason"), text("object"), text("context"))
		}
	}
}

// aclRare is what a worker needs at rare moments only: to see how old a sweep's lock is that another set.
const aclRare = "+pttl"

// aclUsed fails the test for each allowed command that nothing used.
func aclUsed(t *testing.T, admin rueidis.Client, commands string) {
	t.Helper()
	stats, err := admin.Do(t.Context(), admin.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	for c := range strings.FieldsSeq(commands) {
		if !strings.Contains(stats, "|") { // Redis 6.2 counts no subcommands
			c, _, _ = strings.Cut(c, "|")
		}
		if c != aclRare && !strings.Contains(stats, "cmdstat_"+strings.TrimPrefix(c, "+")+":") {
			t.Errorf("%s is allowed and nothing used it", c)
		}
	}
}

// aclLog collects what is logged.
type aclLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *aclLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *aclLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
