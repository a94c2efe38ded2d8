package rsmq

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// operations are all that touch a queue; each once.
func operations(ctx context.Context, c *Client, id string) map[string]func() error {
	return map[string]func() error{
		"create":     func() error { return c.CreateQueue(ctx, "q", QueueOptions{}) },
		"drop":       func() error { return c.DeleteQueue(ctx, "q") },
		"attributes": func() error { _, err := c.GetQueueAttributes(ctx, "q"); return err },
		"set":        func() error { _, err := c.SetQueueAttributes(ctx, "q", QueueChanges{Delay: Seconds(1)}); return err },
		"send":       func() error { _, err := c.SendMessage(ctx, "q", "m", SendOptions{}); return err },
		"receive":    func() error { _, _, err := c.ReceiveMessage(ctx, "q", ReceiveOptions{}); return err },
		"pop":        func() error { _, _, err := c.PopMessage(ctx, "q"); return err },
		"purge":      func() error { _, err := c.PurgeMessages(ctx, "q", 1); return err },
		"delete":     func() error { _, err := c.DeleteMessage(ctx, "q", id); return err },
		"extend":     func() error { _, err := c.ChangeMessageVisibility(ctx, "q", id, time.Second); return err },
		"list":       func() error { _, err := c.ListQueues(ctx); return err },
	}
}

const someID = "gqll7vatqf0000000000000000000001"

// A key of another type is an error that names it, and nothing is changed.
func TestWrongTypes(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	k := c.keys("q")
	for _, test := range []struct {
		key  string
		hits []string
	}{
		{k.Hash, []string{"create", "attributes", "set", "send", "receive", "pop", "delete", "purge", "extend"}},
		{k.Messages, []string{"attributes", "set", "send", "receive", "pop", "delete", "purge", "extend"}},
		{k.Queues, []string{"create", "drop", "list"}},
	} {
		for _, name := range test.hits {
			run(t, c, "DEL", k.Hash, k.Messages, k.Queues)
			if name != "create" {
				create(t, c, "q", QueueOptions{})
			}
			run(t, c, "DEL", test.key)
			run(t, c, "SET", test.key, "a string")
			before := dumpOf(t, c)
			err := operations(t.Context(), c, someID)[name]()
			if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || errors.Is(err, ErrUncertain) {
				t.Errorf("%s with a string at %s: %v", name, test.key, err)
			}
			if after := dumpOf(t, c); after != before {
				t.Errorf("%s with a string at %s changed\n%s\nto\n%s", name, test.key, before, after)
			}
		}
	}
}

// dumpOf is what the keys of the queue q hold.
func dumpOf(t *testing.T, c *Client) string {
	t.Helper()
	k := c.keys("q")
	var all []string
	for _, key := range []string{k.Hash, k.Messages, k.Queues} {
		text, err := run(t, c, "DUMP", key).ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(err)
		}
		all = append(all, key+"="+text)
	}
	return strings.Join(all, "\n")
}

// A counter that is no number, or not written as Redis writes one, is an error before anything has changed: no message is hidden, stored or lost by
// it.
func TestCorruptedCounters(t *testing.T) {
	t.Parallel()
	for field, hits := range map[string][]string{
		"totalsent": {"send"}, "totalrecv": {"receive", "pop"}, someID + ":rc": {"receive", "pop"},
	} {
		for _, name := range hits {
			t.Run(field+" "+name, func(t *testing.T) {
				t.Parallel()
				c := fresh(t, Config{})
				create(t, c, "q", QueueOptions{})
				run(t, c, "ZADD", c.keys("q").Messages, "1", someID)
				for _, value := range []string{"many", "", "1e3", " 5", "5 ", "5.0", "007", "+5", "-0", "0x10", "9007199254740993", "-9007199254740993", "inf", "nan"} {
					run(t, c, "HSET", c.keys("q").Hash, someID, "body", field, value)
					before := dumpOf(t, c)
					err := operations(t.Context(), c, someID)[name]()
					if err == nil || errors.Is(err, ErrUncertain) || !strings.Contains(err.Error(), "not an integer") {
						t.Errorf("%q: %v", value, err)
					}
					if after := dumpOf(t, c); after != before {
						t.Errorf("%q: changed\n%s\nto\n%s", value, before, after)
					}
				}
				for _, value := range []string{"0", "41", "-3", "9007199254740990"} {
					run(t, c, "HSET", c.keys("q").Hash, field, value)
					if err := operations(t.Context(), c, someID)[name](); err != nil {
						t.Errorf("%q: %v", value, err)
					}
					run(t, c, "ZADD", c.keys("q").Messages, "1", someID)
				}
			})
		}
	}
}

// A counter that is no number does not keep the messages before it.
func TestCorruptedCounterAmongOthers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"receive", "pop"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fresh(t, Config{})
			create(t, c, "q", QueueOptions{})
			ids := send(t, c, "q", "a", "b", "c")
			run(t, c, "HSET", c.keys("q").Hash, ids[1]+":rc", "many")
			take := c.PopMessages
			if name == "receive" {
				take = func(ctx context.Context, queue string, most int) ([]Message, error) {
					return c.ReceiveMessages(ctx, queue, most, ReceiveOptions{})
				}
			}
			if ms, err := take(t.Context(), "q", 3); err != nil || len(ms) != 1 || ms[0].ID != ids[0] {
				t.Errorf("%+v, %v", ms, err)
			}
			if ms, err := take(t.Context(), "q", 3); err == nil {
				t.Errorf("%+v", ms)
			}
			if a := attributes(t, c, "q"); a.Visible != 2 || a.Received != 1 {
				t.Errorf("attributes: %+v", a)
			}
		})
	}
}

// What a queue stores is read as the Node package reads it: times out of range are refused where they count.
func TestStoredAttributes(t *testing.T) {
	t.Parallel()
	c := fresh(t, Config{})
	create(t, c, "q", QueueOptions{})
	hash := c.keys("q").Hash
	run(t, c, "HSET", hash, "vt", "99999999", "delay", "2.9", "maxsize", "many", "created", "x")
	if a := attributes(t, c, "q"); a.VisibilityTimeout != 99999999*time.Second || a.Delay != 2*time.Second ||
		strings.Join(a.Missing, " ") != "maxsize created" {
		t.Errorf("%+v", a)
	}
	if _, err := c.SendMessage(t.Context(), "q", strings.Repeat("x", 70000), SendOptions{Delay: Seconds(0)}); err != nil {
		t.Errorf("an unreadable limit is none: %v", err)
	}
	if _, _, err := c.ReceiveMessage(t.Context(), "q", ReceiveOptions{}); !errors.Is(err, ErrInvalidValue) {
		t.Errorf("receive: %v", err)
	}
	if _, ok, err := c.PopMessage(t.Context(), "q"); !ok || err != nil {
		t.Errorf("pop: %v, %v", ok, err)
	}
	run(t, c, "HSET", hash, "delay", "-1")
	if _, err := c.SendMessage(t.Context(), "q", "m", SendOptions{}); !errors.Is(err, ErrInvalidValue) {
		t.Errorf("send: %v", err)
	}
	run(t, c, "HDEL", hash, "delay")
	for _, name := range []string{"send", "receive", "pop", "extend", "set"} {
		if err := operations(t.Context(), c, someID)[name](); !errors.Is(err, ErrQueueNotFound) {
			t.Errorf("%s of a queue that lacks an attribute: %v", name, err)
		}
	}
	if a := attributes(t, c, "q"); strings.Join(a.Missing, " ") != "delay maxsize created" {
		t.Errorf("%+v", a)
	}
}

// A server that forgot the scripts is given them again.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	c := over(t, redistest.Dial(t, server.URL()), Config{})
	for range 3 {
		for _, name := range []string{"create", "send", "receive", "extend", "pop", "attributes", "set", "delete", "purge", "drop"} {
			if err := operations(t.Context(), c, someID)[name](); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			run(t, c, "SCRIPT", "FLUSH")
		}
	}
}

// A lost answer is said to be one, and nothing is sent twice.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	direct := over(t, redistest.Dial(t, server.URL()), Config{})
	create(t, direct, "q", QueueOptions{})
	proxy := redistest.NewProxy(t, server.URL())
	c := over(t, redistest.Dial(t, proxy.URL()), Config{})
	send(t, c, "q", "first") // the server knows the script now
	cut := proxy.CutAfterRequest([]byte("second"))
	_, err := c.SendMessage(t.Context(), "q", "second", SendOptions{})
	<-cut
	if !errors.Is(err, ErrUncertain) {
		t.Errorf("send: %v", err)
	}
	redistest.WaitFor(t, 10*time.Second, "the message", func() bool { return attributes(t, direct, "q").Messages == 2 })
	cut = proxy.CutBeforeRequest([]byte("third"))
	if _, err := c.SendMessage(t.Context(), "q", "third", SendOptions{}); err == nil {
		t.Error("a send that never arrived succeeded")
	}
	<-cut
	if _, err := c.SendMessage(t.Context(), "q", "fourth", SendOptions{}); err != nil {
		t.Errorf("after the cut: %v", err)
	}
	if a := attributes(t, direct, "q"); a.Messages != 3 || a.Sent != 3 {
		t.Errorf("attributes: %+v", a)
	}
}

// Every call ends with its context, also when Redis does not answer, and before it is sent.
func TestContext(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	proxy := redistest.NewProxy(t, server.URL())
	c := opened(t, proxy.URL(), Config{})
	create(t, c, "q", QueueOptions{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, op := range operations(ended, c, someID) {
		if err := op(); !errors.Is(err, context.Canceled) || errors.Is(err, ErrUncertain) {
			t.Errorf("%s with an ended context: %v", name, err)
		}
	}
	proxy.BlackHole()
	for name := range operations(ended, c, someID) {
		soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := operations(soon, c, someID)[name]()
		cancel()
		reads := name == "attributes" || name == "list"
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUncertain) == reads {
			t.Errorf("%s with a silent server: %v", name, err)
		}
	}
	proxy.Pass()
	if _, err := c.SendMessage(t.Context(), "q", "m", SendOptions{}); err != nil {
		t.Errorf("after the silence: %v", err)
	}
}

// A server that was restarted is found again.
func TestRestart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: "always"})
	c := over(t, redistest.Dial(t, server.URL()), Config{})
	create(t, c, "q", QueueOptions{})
	send(t, c, "q", "kept")
	server.Kill()
	if _, err := c.SendMessage(t.Context(), "q", "m", SendOptions{}); err == nil {
		t.Error("a dead server took a message")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	var m Message
	redistest.WaitFor(t, 20*time.Second, "the message", func() bool {
		var ok bool
		m, ok, _ = c.ReceiveMessage(t.Context(), "q", ReceiveOptions{VisibilityTimeout: Seconds(0)})
		return ok
	})
	if m.Body != "kept" {
		t.Errorf("received %+v", m)
	}
}

// A user who may touch nothing but the namespace can do everything: numbers are no keys.
func TestLeastPermissions(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	admin := over(t, redistest.Dial(t, server.URL()), Config{})
	run(t, admin, "ACL", "SETUSER", "app", "on", ">secret", "~rsmq:*", "+hello", "+ping", "+evalsha", "+eval", "+time", "+type", "+hset",
		"+hget", "+hmget", "+hsetnx", "+hincrby", "+hdel", "+zadd", "+zrem", "+zscore", "+zcard", "+zcount", "+zrange", "+zrangebyscore", "+sadd",
		"+srem", "+smembers", "+unlink")
	c := over(t, redistest.Dial(t, strings.Replace(server.URL(), "//", "//app:secret@", 1)), Config{Realtime: true})
	for _, name := range []string{"create", "send", "receive", "extend", "pop", "attributes", "set", "delete", "list", "drop"} {
		if err := operations(t.Context(), c, someID)[name](); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
