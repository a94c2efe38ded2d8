package xstreamq_test

import (
	"context"
	"strconv"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// cutOther is a group that has dead letters, and nothing else.
const cutOther = "other"

// cutLookPoints are those of calls that change nothing.
func cutLookPoints() []cutPoint {
	peek := func(from xstreamq.Place) func(ctx context.Context, cl *xstreamq.Client) (any, error) {
		return func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			found, err := cl.Peek(ctx, faultQueue, faultGroup, xstreamq.PeekOptions{From: from})
			return len(found), err
		}
	}
	letters := func(f xstreamq.DeadFilter) func(ctx context.Context, cl *xstreamq.Client) (any, error) {
		return func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			n := 0
			for _, err := range cl.DeadLetters(ctx, faultQueue, faultGroup, f) {
				if err != nil {
					return nil, err
				}
				n++
			}
			return n, nil
		}
	}
	// The group is not on the stream: only its dead letters tell of it.
	nothing := func(ctx context.Context, cl *xstreamq.Client) (any, error) {
		found, err := cl.Peek(ctx, faultQueue, cutOther, xstreamq.PeekOptions{From: xstreamq.InBackoff})
		return len(found), err
	}
	groups := func(ctx context.Context, cl *xstreamq.Client) (any, error) { return cl.Groups(ctx, faultQueue) }
	points := []cutPoint{
		{name: "depth", request: cutScript("depth"), run: cutLook(func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			d, err := cl.Depth(ctx, faultQueue, faultGroup)
			d.Oldest = 0
			return d, err
		})},
		{name: "depth of one of many", request: cutScript("depthof"), run: cutLook(func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			d, err := cl.DepthOf(ctx, faultQueue, xstreamq.Group{Name: faultGroup, Present: true, Pending: 5, Delivered: "5-0", Lag: 4})
			d.Oldest = 0
			return d, err
		})},
		{name: "lag", request: cutScript("count"), run: cutLook(func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			return cl.Lag(ctx, faultQueue, faultGroup)
		})},
		{name: "pending", request: cutCommand("XPENDING"), run: cutLook(func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			n := 0
			for _, err := range cl.Pending(ctx, faultQueue, faultGroup) {
				if err != nil {
					return nil, err
				}
				n++
			}
			return n, nil
		})},
		{name: "consumers", request: cutCommand("XINFO", "\r\nCONSUMERS\r\n"), run: cutLook(func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			found, err := cl.Consumers(ctx, faultQueue, faultGroup)
			return len(found), err
		})},
		{name: "groups", request: cutCommand("XINFO", "\r\nGROUPS\r\n"), run: cutLook(groups)},
		{name: "groups: their oldest message", request: cutCommand("XPENDING"), run: cutLook(groups)},
		{name: "groups: the registry", request: cutCommand("HKEYS"), run: cutLook(groups)},
		{name: "registered", request: cutCommand("HSCAN"), run: cutLook(func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			return cl.Registered(ctx)
		})},
		{name: "queues", request: cutCommand("SCAN"), run: cutLook(func(ctx context.Context, cl *xstreamq.Client) (any, error) {
			return cl.Queues(ctx)
		})},
		{name: "peek into the queue", request: cutCommand("XRANGE"), run: cutLook(peek(xstreamq.InQueue))},
		{name: "peek at delayed messages", request: cutCommand("ZRANGE"), run: cutLook(peek(xstreamq.InDelayed))},
		{name: "peek where nothing is", request: cutCommand("EXISTS"), run: cutLook(nothing)},
		{name: "dead letters", request: cutCommand("XRANGE"), run: cutLook(letters(xstreamq.DeadFilter{}))},
		{name: "dead letters by age", request: cutCommand("TIME"), run: cutLook(letters(xstreamq.DeadFilter{OlderThan: time.Hour}))},
	}
	for i := range points {
		points[i].more = true
	}
	return points
}

// cutLook asks for something that does not change, before, during and after the cut. The answer that comes must be right, and
// everything must stay as it was.
func cutLook(ask func(ctx context.Context, cl *xstreamq.Client) (any, error)) func(c *cutRun) string {
	return func(c *cutRun) string {
		for id := range 9 {
			c.do("XADD", c.keys.Queue, strconv.Itoa(id+1)+"-0", "body", `"it"`)
		}
		c.buried("dead")
		c.do("XADD", keys.ForGroup(c.prefix, faultQueue, cutOther).DLQ, "*", "body", `"it"`)
		c.do("HSET", c.keys.Registry, faultQueue+"/"+faultGroup, "{}")
		c.do("XREADGROUP", "GROUP", faultGroup, "w~60000", "COUNT", "5", "STREAMS", c.keys.Queue, ">")
		c.do("ZADD", c.keys.Delayed, "9999999999999", "d9999999999999-0123456789abcdef\x00"+wire.Pack([]string{"body", `"it"`}))
		before := c.places()
		past, _ := c.past()
		want, err := ask(c.t.Context(), past)
		if err != nil {
			c.t.Fatal(err)
		}
		cl, _ := c.through()
		said := c.again(func(ctx context.Context) (string, error) {
			got, err := ask(ctx, cl)
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				c.t.Errorf("the answer is not what is there: -want +got:\n%s", diff)
			}
			return "answered", err
		})
		if diff := cmp.Diff(before.at, c.places().at); diff != "" {
			c.t.Errorf("looking changed something: -before +after:\n%s", diff)
		}
		return said
	}
}
