package rsmq

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// fresh returns a client whose namespace is this test's own.
func fresh(t *testing.T, cfg Config) *Client {
	t.Helper()
	cfg.Namespace = redistest.Prefix(t) + "rsmq"
	return over(t, redistest.Client(t), cfg)
}

func over(t *testing.T, rc rueidis.Client, cfg Config) *Client {
	t.Helper()
	c, err := New(rc, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func create(t *testing.T, c *Client, queue string, o QueueOptions) {
	t.Helper()
	if err := c.CreateQueue(t.Context(), queue, o); err != nil {
		t.Fatal(err)
	}
}

func send(t *testing.T, c *Client, queue string, bodies ...string) []string {
	t.Helper()
	ids, err := c.SendMessages(t.Context(), queue, bodies, SendOptions{})
	if err != nil || len(ids) != len(bodies) {
		t.Fatalf("%d of %d sent: %v", len(ids), len(bodies), err)
	}
	return ids
}

func attributes(t *testing.T, c *Client, queue string) Attributes {
	t.Helper()
	a, err := c.GetQueueAttributes(t.Context(), queue)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// run makes a command of Redis.
func run(t *testing.T, c *Client, words ...string) rueidis.RedisResult {
	t.Helper()
	r := c.redis.Do(t.Context(), c.redis.B().Arbitrary(words...).Build())
	if err := r.NonRedisError(); err != nil {
		t.Fatal(err)
	}
	return r
}
