package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// What docs/operations.md says that people need who look after a queue: here for a queue named q and the prefix "app:".
const (
	aclOperatorKeys = "~app:{q}* ~app:xstreamq:registry"

	aclLooker = "+hello +ping +eval +evalsha +time +type +exists +hkeys +hscan +xinfo|groups +xinfo|consumers +xlen +xpending" +
		" +xrange +xrevrange +zcard +zrange"
)

// aclTasks is what each task needs besides.
var aclTasks = map[string]string{
	"redrive": "+xadd +xdel +zrem +zrangebyscore",
	"purge":   "+xdel",
	"cancel":  "+zcount +zrem +zscan",
	"forget":  "+xack +hget +hdel +hsetnx +xgroup|destroy +unlink",
	"compact": "+xtrim",
}

// aclSeldom is what is needed at rare moments only: when a connection was idle for a second, when the canary is not dead before it is
// looked for, when a row has to be put back, when a set is long.
var aclSeldom = []string{"+ping", "+zrangebyscore", "+hsetnx", "+zscan"}

// aclUsual leaves those out.
func aclUsual(commands string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(commands), func(c string) bool { return slices.Contains(aclSeldom, c) }), " ")
}

// aclKept fills a group with a message in every place: its worker holds one.
func aclKept(t *testing.T, server *redistest.Server) (delayed, dead string) {
	t.Helper()
	owner, err := xstreamq.Open(server.URL(), xstreamq.Config{KeyPrefix: "app:", CompactEvery: -1, DrainTimeout: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close() })
	q := stopQueue(t, owner, "q")
	held := make(chan string, 1)
	died := make(chan xstreamq.DeadMessage, 10)
	stopSubscribe(t, q, func(ctx context.Context, m *xstreamq.Message[string]) error {
		switch m.Body {
		case "held":
			held <- m.Body
			<-ctx.Done()
			return ctx.Err()
		case "dead":
			return xstreamq.DeadLetter(errors.New("never"))
		case "later":
			return xstreamq.RetryAfter(time.Hour, errors.New("not now"))
		}
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 4, OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) { died <- d }})
	stopStart(t, owner)
	stopPublish(t, q, "done", "later", "dead", "held")
	if delayed, err = q.Publish(t.Context(), "delayed", xstreamq.WithDelay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	stopTake(t, "a message that is held", held)
	dead = stopTake(t, "a dead letter", died).ID
	return delayed, dead
}

func aclNamed(t *testing.T, server *redistest.Server) *xstreamq.Client {
	t.Helper()
	c, err := xstreamq.Open(aclURL(server), xstreamq.Config{KeyPrefix: "app:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// aclLook looks at everything.
func aclLook(t *testing.T, c *xstreamq.Client, dead string) {
	t.Helper()
	ctx := t.Context()
	if d, err := c.Depth(ctx, "q", "g"); err != nil || d.Pending == 0 || d.Backoff != 1 || d.Delayed != 1 || d.Dead != 1 {
		t.Errorf("Depth: %+v, %v", d, err)
	}
	check := func(what string, n int, err error) {
		t.Helper()
		if err != nil || n == 0 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
	}
	_, err := c.Lag(ctx, "q", "g")
	check("Lag", 1, err)
	groups, err := c.Groups(ctx, "q")
	check("Groups", len(groups), err)
	rows, err := c.Registered(ctx)
	check("Registered", len(rows), err)
	consumers, err := c.Consumers(ctx, "q", "g")
	check("Consumers", len(consumers), err)
	n := 0
	for _, err := range c.Pending(ctx, "q", "g") {
		check("Pending", 1, err)
		n++
	}
	check("Pending", n, nil)
	for _, place := range []xstreamq.Place{xstreamq.InDelayed, xstreamq.InBackoff, xstreamq.InDLQ} {
		found, err := c.Peek(ctx, "q", "g", xstreamq.PeekOptions{From: place})
		check("Peek at "+string(place), len(found), err)
	}
	for _, place := range []xstreamq.Place{xstreamq.InQueue, xstreamq.InRetry} {
		_, err := c.Peek(ctx, "q", "g", xstreamq.PeekOptions{From: place})
		check("Peek at "+string(place), 1, err)
	}
	n = 0
	for _, err := range c.DeadLetters(ctx, "q", "g", xstreamq.DeadFilter{NewerThan: time.Hour}) {
		check("DeadLetters", 1, err)
		n++
	}
	check("DeadLetters", n, nil)
	_, err = c.DeadLetterByID(ctx, "q", "g", dead)
	check("DeadLetterByID", 1, err)
	if _, err = c.Depth(ctx, "q", "nobody"); !errors.Is(err, xstreamq.ErrNoGroup) {
		t.Errorf("Depth of no group: %v", err)
	}
}

// Who only looks needs no more than the documented commands and keys, and all of these.
func TestMinimalACLOfALooker(t *testing.T) {
	t.Parallel()
	server, admin := aclServer(t, aclOperatorKeys, aclLooker)
	_, dead := aclKept(t, server)
	resetStats(t, admin)
	aclLook(t, aclNamed(t, server), dead)
	aclDenied(t, admin)
	aclUsed(t, admin, aclUsual(aclLooker))
}

// Each task of an operator needs what looking needs, and besides no more than is documented, and all of that.
func TestMinimalACLOfAnOperator(t *testing.T) {
	t.Parallel()
	tasks := map[string]func(t *testing.T, c *xstreamq.Client, delayed, dead string) error{
		"redrive": func(t *testing.T, c *xstreamq.Client, _, _ string) error {
			// It dies again, so there is always one.
			canary, err := c.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{Canary: 1})
			if !errors.Is(err, xstreamq.ErrCanary) || len(canary.Redriven) != 1 {
				return fmt.Errorf("the canary: %+v, %w", canary, err)
			}
			all, err := c.RedriveAll(t.Context(), "q", "g", xstreamq.RedriveAllOptions{RedriveOptions: xstreamq.RedriveOptions{ToQueue: true}})
			if err == nil && len(all.Redriven) != 1 {
				err = fmt.Errorf("to the queue: %+v", all)
			}
			return err
		},
		"purge": func(t *testing.T, c *xstreamq.Client, _, dead string) error {
			n, err := c.Purge(t.Context(), "q", "g", dead)
			if err == nil && n != 1 {
				err = errors.New("nothing purged")
			}
			return err
		},
		"cancel": func(t *testing.T, c *xstreamq.Client, delayed, _ string) error {
			ok, err := c.Cancel(t.Context(), "q", delayed)
			if err == nil && !ok {
				err = errors.New("not cancelled")
			}
			return err
		},
		"forget": func(t *testing.T, c *xstreamq.Client, _, _ string) error {
			return c.Forget(t.Context(), "q", "idle", xstreamq.ForgetOptions{})
		},
		"compact": func(t *testing.T, c *xstreamq.Client, _, _ string) error {
			_, err := c.Compact(t.Context(), "q")
			return err
		},
	}
	for name, do := range tasks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, admin := aclServer(t, aclOperatorKeys, aclLooker+" "+aclTasks[name])
			delayed, dead := aclKept(t, server)
			healthCommand(t, admin, strings.Fields("XGROUP CREATE app:{q} idle 0")...)
			resetStats(t, admin)
			if err := do(t, aclNamed(t, server), delayed, dead); err != nil {
				t.Error(err)
			}
			aclDenied(t, admin)
			aclUsed(t, admin, aclUsual(aclTasks[name]))
		})
	}
}

// resetStats forgets which commands were used so far.
func resetStats(t *testing.T, admin rueidis.Client) {
	t.Helper()
	healthCommand(t, admin, "CONFIG", "RESETSTAT")
}
