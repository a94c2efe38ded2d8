package xstreamq_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

const (
	cutReadTwo  = "\r\nCOUNT\r\n$1\r\n2\r\n$7\r\nSTREAMS\r\n" // a read that does not block
	cutReadPast = "\r\n18446744073709551615-18446744073709551614\r\n"
	cutStart    = "$1\r\n-\r\n$13\r\n" // of a sweep that knows what time it was before
)

func longLease(o *xstreamq.SubscribeOptions) { o.VisibilityTimeout = time.Minute }

// cutReadPoints are those of a message on its way to a worker.
func cutReadPoints() []cutPoint {
	fromQueue := func(more ...func(*xstreamq.SubscribeOptions)) func(c *cutRun) string {
		return func(c *cutRun) string {
			c.publish("it")
			c.arm()
			c.work(more...)
			c.await()
			return c.end("it")
		}
	}
	fromRetry := func(c *cutRun) string {
		c.redelivered("it", 0)
		c.arm()
		c.work()
		c.await()
		return c.end("it")
	}
	blocked := func(first, second string) func(c *cutRun) string {
		return func(c *cutRun) string {
			c.ownServer()
			c.work()
			c.blocking()
			c.arm()
			c.publish(first) // for the read that blocks now; the next one is cut
			c.handled([]string{first})
			c.blocking()
			c.publish(second)
			c.await()
			return c.end(first, second)
		}
	}
	stray := func(c *cutRun) string {
		c.publish("it")
		read := c.proxy.CutAt(redistest.WithinReply, "\r\nXREADGROUP\r\n", onQueue, cutReadTwo)
		c.arm()
		c.work(longLease)
		<-read
		c.await()
		return c.end("it")
	}
	once := cutAllowance{swallow: 1}
	failing := cutAllowance{swallow: 1, failures: 1}
	return []cutPoint{
		{name: "read the queue", request: cutCommand("XREADGROUP", onQueue, cutReadTwo), allow: once, run: fromQueue()},
		{name: "read the queue, with a long lease", request: cutCommand("XREADGROUP", onQueue, cutReadTwo), run: fromQueue(longLease)},
		{name: "read the queue, blocked", request: cutCommand("XREADGROUP", onQueue, "\r\nBLOCK\r\n"), allow: once, run: blocked("ok-1", "ok-2")},
		{name: "read the retry stream", request: cutCommand("XREADGROUP", onRetry, cutReadTwo), allow: once, run: fromRetry},
		{name: "read the retry stream, blocked", request: cutCommand("XREADGROUP", onRetry, "\r\nBLOCK\r\n"), allow: failing,
			run: blocked("flaky-1", "flaky-2")},
		{name: "give a sign of life", request: cutCommand("XREADGROUP", onQueue, cutReadPast), run: fromQueue()},
		{name: "learn a reader's id", request: cutCommand("CLIENT", "\r\nID\r\n"), run: fromQueue()},
		{name: "try to wake a reader", request: cutCommand("CLIENT", "\r\nUNBLOCK\r\n"), run: fromQueue()},
		{name: "look for a read that was cut", request: cutCommand("XPENDING", onQueue), run: stray},
		{name: "give back what it brought", request: cutScript("release", onQueue), run: stray},
		{name: "ask Dedupe", request: cutCommand("ZMSCORE"), run: fromQueue(func(o *xstreamq.SubscribeOptions) { o.Dedupe = time.Minute })},
	}
}

// redelivered puts a message onto the retry stream that lost its lease so often.
func (c *cutRun) redelivered(body string, lost int) string {
	c.t.Helper()
	c.do("XGROUP", "CREATE", c.keys.Retry, faultGroup+"-retry", "0", "MKSTREAM")
	reply := c.do("XADD", c.keys.Retry, "*", "body", strconv.Quote(body), "oid", "1-1", "lc", strconv.Itoa(lost))
	id, err := reply.ToString()
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

// cutSweepPoints are those of messages whose worker vanished.
func cutSweepPoints() []cutPoint {
	vanished := func(lost int) func(c *cutRun) string {
		return func(c *cutRun) string {
			id := c.redelivered("it", lost)
			c.taken(c.keys.Retry, faultGroup+"-retry", id)
			c.arm()
			c.work()
			c.await()
			return c.end("it")
		}
	}
	return []cutPoint{
		{name: "take over from a vanished worker", request: cutScript("reclaim", onQueue, cutStart), allow: cutAllowance{losses: 1},
			run: func(c *cutRun) string {
				c.publish("it")
				c.do("XGROUP", "CREATE", c.keys.Queue, faultGroup, "0")
				c.taken(c.keys.Queue, faultGroup, c.ids["it"])
				c.arm()
				c.work()
				c.await()
				return c.end("it")
			}},
		{name: "take over what was redelivered", request: cutScript("reclaim", onRetry, cutStart), allow: cutAllowance{losses: 2}, run: vanished(1)},
		{name: "take over what lost too many leases", request: cutScript("reclaim", onRetry, cutStart), allow: cutAllowance{dead: true},
			run: vanished(3)},
	}
}

// taken lets a worker read the entry, and vanish long ago.
func (c *cutRun) taken(stream, group, id string) {
	c.t.Helper()
	const gone = "gone~2000"
	c.do("XREADGROUP", "GROUP", group, gone, "COUNT", "1", "STREAMS", stream, ">")
	c.do("XCLAIM", stream, group, gone, "0", id, "IDLE", "100000", "JUSTID")
}

// cutLoopPoints are those of the loops that go on beside the messages.
func cutLoopPoints() []cutPoint {
	beside := func(c *cutRun) string {
		c.publish("it")
		c.arm()
		c.work()
		c.await()
		return c.end("it")
	}
	return []cutPoint{
		{name: "promote a delayed message", request: cutScript("promote"), run: func(c *cutRun) string {
			_, q := c.past()
			c.inside(func() {
				if _, err := q.Publish(c.t.Context(), "it", xstreamq.WithDelay(time.Millisecond)); err != nil {
					c.t.Fatal(err)
				}
			})
			c.wait(10 * time.Millisecond)
			c.arm()
			c.work()
			c.await()
			return c.end("it")
		}},
		{name: "promote a failed message", request: cutScript("promote"), allow: cutAllowance{failures: 1}, run: func(c *cutRun) string {
			c.do("ZADD", c.keys.Backoff, "1", "1-1\x00"+wire.Pack([]string{"body", `"it"`, "oid", "1-1", "rc", "1"}))
			c.arm()
			c.work()
			c.await()
			return c.end("it")
		}},
		{name: "look who must have read before trimming", request: cutCommand("HKEYS"), run: beside},
		{name: "trim what is finished", request: cutScript("compact"), run: beside},
		{name: "look for consumers that are gone", request: cutCommand("XINFO", "\r\nCONSUMERS\r\n"), run: beside},
		{name: "check the health", request: cutCommand("XADD", "\r\nNOMKSTREAM\r\n"), run: func(c *cutRun) string {
			c.publish("it")
			cl := c.work()
			c.arm()
			said := "unhealthy for a moment"
			c.inside(func() {
				if cl.Healthy(c.t.Context()) == nil {
					said = "healthy"
				}
			})
			c.await()
			return fmt.Sprintf("%s; %s", said, c.end("it"))
		}},
	}
}
