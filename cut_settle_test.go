package xstreamq_test

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// cutSettlePoints are those of an outcome that is written.
func cutSettlePoints() []cutPoint {
	settle := func(body string, more ...func(*xstreamq.SubscribeOptions)) func(c *cutRun) string {
		return func(c *cutRun) string {
			c.work(more...)
			c.arm()
			c.publish(body)
			c.await()
			return c.settled(c.end(body))
		}
	}
	once := cutAllowance{failures: 1}
	dead := cutAllowance{failures: 1, dead: true}
	dedupe := func(o *xstreamq.SubscribeOptions) { o.Dedupe = time.Minute }
	return []cutPoint{
		{name: "acknowledge", request: cutCommand("XACK", onQueue), run: settle("ok")},
		{name: "acknowledge, with Dedupe", request: cutScript("ack", onQueue), run: settle("ok", dedupe)},
		{name: "acknowledge what was redelivered", request: cutScript("ack", onRetry), allow: once, run: settle("flaky")},
		{name: "fail, to be retried", request: cutScript("fail", "failed: flaky"), allow: once, run: settle("flaky")},
		{name: "fail for the last time", request: cutScript("fail", onRetry, "failed: bad"), allow: dead, run: settle("bad")},
		{name: "reject", request: cutScript("fail", "rejected: reject"), allow: dead, run: settle("reject")},
		{name: "release", request: cutScript("fail", "not now: release"), run: settle("release")},
		{name: "fail when the entry is gone", request: cutScript("fail", `"slow"`), allow: once, run: func(c *cutRun) string {
			c.work()
			c.publish("slow")
			c.running("slow")
			c.do("XDEL", c.keys.Queue, c.ids["slow"])
			c.arm()
			c.open()
			c.await()
			return c.settled(c.end("slow"))
		}},
		{name: "read a dead letter for OnDeadLetter", request: cutCommand("XRANGE", "}."+faultGroup+".dlq\r\n"), allow: dead, run: cutOnDeadLetter},
	}
}

func cutOnDeadLetter(c *cutRun) string {
	var told atomic.Int32
	c.work(func(o *xstreamq.SubscribeOptions) {
		o.OnDeadLetter = func(context.Context, xstreamq.DeadMessage) { told.Add(1) }
	})
	c.arm()
	c.publish("reject")
	c.await()
	said := c.end("reject")
	if c.kind.cut == redistest.SwallowReply {
		c.inside(func() { _ = c.clients[0].Close() }) // waits for the callback, which gives up at its deadline
	} else {
		redistest.WaitFor(c.t, faultPatience, "OnDeadLetter", func() bool { return told.Load() > 0 })
	}
	return said + ", told " + map[int32]string{0: "to nobody", 1: "once", 2: "twice"}[told.Load()]
}

// cutLeasePoints are those of leases that are kept, and of messages that are suspected of killing workers.
func cutLeasePoints() []cutPoint {
	suspect := func(c *cutRun) string {
		c.redelivered("it", 2)
		c.arm()
		c.work()
		c.await()
		return c.end("it")
	}
	return []cutPoint{
		{name: "renew a lease", request: cutScript("extend", onQueue, "\r\nrenew\r\n"), run: func(c *cutRun) string {
			c.work()
			c.publish("long")
			c.running("long")
			c.arm()
			c.await()
			c.wait(cutLease)
			c.open()
			return c.end("long")
		}},
		{name: "check a lease that is not renewed", request: cutScript("extend", onQueue, "\r\ncheck\r\n"),
			allow: cutAllowance{losses: 1, overlap: true}, run: cutCheckLease},
		{name: "set a suspect apart", request: cutScript("extend", onRetry, "\r\nunstarted\r\n"), allow: cutAllowance{losses: 2}, run: suspect},
		{name: "begin a suspect", request: cutScript("extend", onRetry, "\r\nstarted\r\n"), allow: cutAllowance{losses: 2}, run: suspect},
	}
}

// cutCheckLease lets a lease run out under its handler, which works on, beside the next one, until it is told.
func cutCheckLease(c *cutRun) string {
	c.work(func(o *xstreamq.SubscribeOptions) { o.MaxExtension = -1 })
	c.publish("told")
	c.running("told")
	c.arm()
	c.await()
	return c.end("told")
}
