package xstreamq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// drainLimit is how long Stop may take: less than a connection that carries no replies is noticed in, else as long as it likes.
func (c *cutRun) drainLimit() time.Duration {
	if c.kind.cut == redistest.SwallowReply {
		return 7 * time.Second
	}
	return faultPatience / 2
}

// cutStopPoints are those of a worker that ends.
func cutStopPoints() []cutPoint {
	return []cutPoint{
		{name: "wake a reader at Stop", request: cutCommand("CLIENT", "\r\nUNBLOCK\r\n"), run: func(c *cutRun) string {
			c.ownServer()
			return c.stopIdle()
		}},
		{name: "give back at Stop what has not begun", request: cutScript("release", onQueue), run: func(c *cutRun) string {
			cl := c.work(func(o *xstreamq.SubscribeOptions) { o.Concurrency, o.Prefetch = 1, 2 })
			c.publish("long", "ok-1", "ok-2")
			c.running("long")
			redistest.WaitFor(c.t, faultPatience, "two messages that wait", func() bool {
				h := cl.Health(c.t.Context())
				return h.Subscriptions[0].Waiting == 2
			})
			c.arm()
			said := c.stop(cl, c.drainLimit(), func() {
				c.await()
				c.open()
			})
			return said + "; " + c.end("long", "ok-1", "ok-2")
		}},
		{name: "mark at Stop what a handler still has", request: cutScript("extend", "\r\nunstarted\r\n"),
			allow: cutAllowance{overlap: true}, run: func(c *cutRun) string {
				config := c.config
				c.config = func(cfg *xstreamq.Config) {
					config(cfg)
					cfg.CancelGrace = 24 * time.Second // a busy machine needs its time after the handlers had theirs
				}
				cl := c.work()
				c.publish("left")
				c.running("left")
				c.arm()
				said := c.stop(cl, 300*time.Millisecond, c.await)
				c.start(c.direct, c.options())
				c.handled([]string{"left"})
				c.open()
				return said + "; " + c.end("left")
			}},
		{name: "look at Stop for what is held", request: cutCommand("XPENDING", onQueue), run: (*cutRun).stopIdle},
		{name: "leave the group at Stop", request: cutScript("reap", onQueue), run: (*cutRun).stopIdle},
	}
}

// stopIdle stops a worker that has nothing to do.
func (c *cutRun) stopIdle() string {
	c.t.Helper()
	cl := c.work()
	c.publish("ok-1")
	c.handled([]string{"ok-1"})
	c.drain(nil)
	if c.direct.prefix == "fault:" { // a server of its own: both readers can be seen to wait
		c.blocking()
	}
	c.arm()
	said := c.stop(cl, c.drainLimit(), c.await)
	c.publish("ok-2")
	return said + "; " + c.end("ok-1", "ok-2")
}

// stop ends a worker, and says what Stop said of it.
func (c *cutRun) stop(cl *xstreamq.Client, limit time.Duration, meanwhile func()) string {
	c.t.Helper()
	ended := make(chan error, 1)
	c.inside(func() {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			ended <- cl.Stop(ctx)
		}()
	})
	meanwhile()
	c.working = false
	var err error
	select {
	case err = <-ended:
	case <-time.After(faultPatience):
		c.t.Fatal("Stop does not return")
	}
	c.t.Logf("Stop said: %v", err)
	var drain *xstreamq.DrainError
	switch {
	case errors.As(err, &drain) && drain.Err == nil:
		return "Stop names the handler"
	case errors.As(err, &drain):
		return "Stop names the handler and an error"
	case err != nil:
		return "Stop returns an error"
	}
	return "Stop returns nil"
}

// blocking waits until both readers of the worker wait in a read. It takes a server of its own.
func (c *cutRun) blocking() {
	c.t.Helper()
	redistest.WaitFor(c.t, faultPatience, "two readers that wait", func() bool { return c.blocked() == 2 })
}

// blocked is how many clients wait in a blocking command.
func (c *cutRun) blocked() int {
	c.t.Helper()
	reply := c.do("INFO", "clients")
	text, err := reply.ToString()
	if err != nil {
		c.t.Fatal(err)
	}
	_, text, _ = strings.Cut(text, "blocked_clients:")
	text, _, _ = strings.Cut(text, "\r\n")
	n, err := strconv.Atoi(text)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}
