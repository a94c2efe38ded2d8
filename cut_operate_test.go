package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// buried makes dead letters, and returns their ids.
func (c *cutRun) buried(bodies ...string) []string {
	c.t.Helper()
	c.do("XGROUP", "CREATE", c.keys.Queue, faultGroup, "0", "MKSTREAM")
	ids := make([]string, len(bodies))
	for i, body := range bodies {
		reply := c.do("XADD", c.keys.DLQ, "*", "body", strconv.Quote(body), "oid", fmt.Sprintf("%d-1", i+1),
			"reason", "failed", "rc", "2", "err", "x", "at", "1", "from", "1-1", "by", "w")
		ids[i], _ = reply.ToString()
	}
	return ids
}

// cutDeadPoints are those of dead letters that somebody redrives or deletes.
func cutDeadPoints() []cutPoint {
	redrive := func(o xstreamq.RedriveOptions) func(c *cutRun) string {
		return func(c *cutRun) string {
			ids := c.buried("it")
			cl, _ := c.through()
			said := c.again(func(ctx context.Context) (string, error) {
				res, err := cl.Redrive(ctx, faultQueue, faultGroup, ids, o)
				if len(res.Unredrivable) > 0 && res.Unredrivable[0].Reason == xstreamq.Gone {
					return "gone already", err
				}
				return "redriven", err
			})
			return said + "; " + c.end("it")
		}
	}
	all := func(c *cutRun) string {
		c.buried("it-1", "it-2", "it-3")
		cl, _ := c.through()
		said := c.again(func(ctx context.Context) (string, error) {
			_, err := cl.RedriveAll(ctx, faultQueue, faultGroup, xstreamq.RedriveAllOptions{})
			return "all redriven", err
		})
		return said + "; " + c.end("it-1", "it-2", "it-3")
	}
	purgeAll := func(c *cutRun) string {
		c.buried("it-1", "it-2", "it-3")
		cl, _ := c.through()
		said := c.again(func(ctx context.Context) (string, error) {
			_, err := cl.PurgeAll(ctx, faultQueue, faultGroup, xstreamq.PurgeAllOptions{})
			return "all purged", err
		})
		c.none()
		return said
	}
	return []cutPoint{
		{name: "redrive", request: cutScript("redrive"), run: redrive(xstreamq.RedriveOptions{})},
		{name: "redrive to the queue", request: cutScript("redrive"), run: redrive(xstreamq.RedriveOptions{ToQueue: true})},
		{name: "redrive all: look for the end", more: true, request: cutCommand("XREVRANGE"), run: all},
		{name: "redrive all: read a page", more: true, request: cutCommand("XRANGE"), run: all},
		{name: "redrive all: move a page", request: cutScript("redrive"), run: all},
		{name: "watch the canary", more: true, request: cutScript("find"), run: cutCanary},
		{name: "purge", request: cutCommand("XDEL"), run: func(c *cutRun) string {
			ids := c.buried("it")
			cl, _ := c.through()
			said := c.again(func(ctx context.Context) (string, error) {
				n, err := cl.Purge(ctx, faultQueue, faultGroup, ids...)
				return fmt.Sprintf("%d purged", n), err
			})
			c.none()
			return said
		}},
		{name: "purge all: read a page", more: true, request: cutCommand("XRANGE"), run: purgeAll},
		{name: "purge all: delete a page", request: cutCommand("XDEL"), run: purgeAll},
	}
}

// none checks that nothing is left.
func (c *cutRun) none() {
	c.t.Helper()
	c.end()
	if left := c.places(); len(left.at) > 0 {
		c.t.Errorf("what was purged is still there: %s", left.some())
	}
}

func cutCanary(c *cutRun) string {
	c.buried("it-1", "it-2", "it-3")
	c.start(c.direct, c.options())
	cl, _ := c.through()
	said := c.again(func(ctx context.Context) (string, error) {
		_, err := cl.RedriveAll(ctx, faultQueue, faultGroup, xstreamq.RedriveAllOptions{Canary: 1})
		return "all redriven", err
	})
	return said + "; " + c.end("it-1", "it-2", "it-3")
}

// cutOperatorPoints are those of what somebody asks for by hand.
func cutOperatorPoints() []cutPoint {
	elsewhere := func(c *cutRun) string {
		// Its id says another time than it is due at, so it has to be searched for.
		const id = "d9999999999999-0123456789abcdef"
		c.do("ZADD", c.keys.Delayed, "9999999999998", id+"\x00"+wire.Pack([]string{"body", `"it"`}))
		return c.cancelled(id)
	}
	compact := func(c *cutRun) string {
		c.start(c.direct, c.options())
		c.publish("it")
		c.handled([]string{"it"})
		cl, _ := c.through()
		said := c.again(func(ctx context.Context) (string, error) {
			_, err := cl.Compact(ctx, faultQueue)
			return "trimmed", err
		})
		return said + "; " + c.end("it")
	}
	return []cutPoint{
		{name: "cancel", request: cutScript("cancel"), run: func(c *cutRun) string {
			_, q := c.past()
			var id string
			var err error
			c.inside(func() { id, err = q.Publish(c.t.Context(), "it", xstreamq.WithDelay(time.Hour)) })
			if err != nil {
				c.t.Fatal(err)
			}
			return c.cancelled(id)
		}},
		{name: "cancel: search", more: true, request: cutCommand("ZSCAN"), run: elsewhere},
		{name: "cancel what was found", request: cutCommand("ZREM"), run: elsewhere},
		{name: "compact: look at the groups", more: true, request: cutCommand("HKEYS"), run: compact},
		{name: "compact", more: true, request: cutScript("compact"), run: compact},
	}
}

// cancelled takes a delayed message back, and checks that it is gone.
func (c *cutRun) cancelled(id string) string {
	c.t.Helper()
	cl, _ := c.through()
	said := c.again(func(ctx context.Context) (string, error) {
		found, err := cl.Cancel(ctx, faultQueue, id)
		if !found && !c.point.more {
			return "gone already", err
		}
		return "cancelled", err
	})
	c.none()
	return said
}

// cutForgetPoints are those of a group that is forgotten. A later one finds less to do, or nothing.
func cutForgetPoints() []cutPoint {
	forget := func(c *cutRun) string {
		c.do("XGROUP", "CREATE", c.keys.Queue, faultGroup, "0", "MKSTREAM")
		c.do("HSET", c.keys.Registry, faultQueue+"/"+faultGroup, "{}")
		cl, _ := c.through()
		said := c.again(func(ctx context.Context) (string, error) {
			err := cl.Forget(ctx, faultQueue, faultGroup, xstreamq.ForgetOptions{})
			if errors.Is(err, xstreamq.ErrNoGroup) {
				return "gone already", nil
			}
			return "forgotten", err
		})
		if _, err := cl.Consumers(c.t.Context(), faultQueue, faultGroup); !errors.Is(err, xstreamq.ErrNoGroup) {
			c.t.Errorf("the group is still there: %v", err)
		}
		c.publish("it")
		return said + "; " + c.end("it")
	}
	return []cutPoint{
		{name: "forget: read the row", more: true, request: cutCommand("HGET"), run: forget},
		{name: "forget: look at what it holds", more: true, request: cutScript("survey"), run: forget},
		{name: "forget: look for workers", more: true, request: cutCommand("XINFO", "\r\nCONSUMERS\r\n"), run: forget},
		{name: "forget: delete the row", more: true, request: cutCommand("HDEL"), run: forget},
		{name: "forget: remove the group", request: cutScript("forget"), run: forget},
	}
}
