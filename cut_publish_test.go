package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// cutPublishPoints are those of a message on its way in.
func cutPublishPoints() []cutPoint {
	later := xstreamq.WithDelay(time.Millisecond)
	return []cutPoint{
		{name: "publish", request: cutCommand("XADD"), run: cutPublish()},
		{name: "publish with a delay", request: cutScript("publish"), run: cutPublish(later)},
		{name: "publish a batch", request: cutCommand("XADD", `"it-2"`), run: cutPublishBatch()},
		{name: "publish a batch with a delay", request: cutScript("publish", `"it-2"`), run: cutPublishBatch(later)},
	}
}

func cutPublish(opts ...xstreamq.PublishOption) func(c *cutRun) string {
	return func(c *cutRun) string {
		_, q := c.through()
		c.arm()
		var id string
		var err error
		c.inside(func() { id, err = q.Publish(c.t.Context(), "it", opts...) })
		c.await()
		said := c.published("it", id, err)
		if len(c.storedBodies()["it"]) == 0 {
			return said
		}
		return said + "; " + c.end("it")
	}
}

// cutPublishBatch says what became of the message whose request was cut, and checks the others.
func cutPublishBatch(opts ...xstreamq.PublishOption) func(c *cutRun) string {
	return func(c *cutRun) string {
		_, q := c.through()
		batch := make([]xstreamq.Outgoing[string], 5)
		for i := range batch {
			batch[i] = xstreamq.Outgoing[string]{Body: fmt.Sprintf("it-%d", i), Options: opts}
		}
		c.arm()
		var results []xstreamq.PublishResult
		c.inside(func() { results = q.PublishBatch(c.t.Context(), batch) })
		c.await()
		said := ""
		for i, res := range results {
			if s := c.published(batch[i].Body, res.ID, res.Err); i == 2 {
				said = s
			}
		}
		var stored []string
		for body := range c.storedBodies() {
			stored = append(stored, body)
		}
		if len(stored) == 0 {
			return said
		}
		return said + "; " + c.end(stored...)
	}
}

// published checks what a publish said against what Redis holds, and puts it into words.
func (c *cutRun) published(body, id string, err error) string {
	c.t.Helper()
	ids := c.storedBodies()[body]
	sure := err == nil
	said := "nil"
	switch {
	case errors.Is(err, xstreamq.ErrPublishUncertain):
		said = "ErrPublishUncertain"
	case err != nil:
		said = "an error"
	}
	if sure && (len(ids) != 1 || ids[0] != id) || said == "an error" && len(ids) > 0 || len(ids) > 1 {
		c.t.Errorf("%s is stored as %q, and Publish returned %q, %v", body, ids, id, err)
	}
	if len(ids) == 0 {
		return said + ", not stored"
	}
	return said + ", stored " + cutTimes(len(ids))
}

// cutStartPoints are those of a worker that begins.
func cutStartPoints() []cutPoint {
	begin := func(c *cutRun) string {
		c.publish("it")
		c.arm()
		c.work()
		c.await()
		return "started; " + c.end("it")
	}
	return []cutPoint{
		{name: "register the group", request: cutScript("register"), run: begin},
		{name: "create the group", request: cutCommand("XGROUP", "\r\nCREATE\r\n", onQueue), run: begin},
		{name: "create the group of the retry stream", request: cutCommand("XGROUP", "\r\nCREATE\r\n", onRetry), run: begin},
		{name: "create the group on a full server", request: cutScript("create", onQueue), run: cutCreateOnFullServer},
		{name: "look at the server's settings", request: cutCommand("CONFIG"), run: begin},
		{name: "create a group that was lost", request: cutCommand("XGROUP", "\r\nCREATE\r\n", onQueue), run: func(c *cutRun) string {
			c.work()
			c.arm()
			c.do("XGROUP", "DESTROY", c.keys.Queue, faultGroup)
			c.publish("it")
			c.await()
			return c.end("it")
		}},
	}
}

// ownServer gives the run a server that no other test sees.
func (c *cutRun) ownServer() {
	c.t.Helper()
	server := redistest.Start(c.t, redistest.Options{})
	rig := newFaultRig(c.t, server)
	rig.config = c.config
	c.before(rig)
	c.load()
}

func cutCreateOnFullServer(c *cutRun) string {
	c.ownServer()
	c.publish("it")
	// A full server takes no group that it does not know.
	c.do("HSET", c.keys.Registry, faultQueue+"/"+faultGroup, "{}")
	c.do("CONFIG", "SET", "maxmemory", "1")
	c.arm()
	c.work()
	c.await()
	c.do("CONFIG", "SET", "maxmemory", "0")
	return "started; " + c.end("it")
}

// again makes a call until it succeeds, and says whether it did at once. Right after a reply it is chance whether what the call asks
// next is lost.
func (c *cutRun) again(call func(ctx context.Context) (string, error)) (said string) {
	c.t.Helper()
	c.arm()
	var err error
	c.inside(func() { said, err = call(c.t.Context()) })
	c.await()
	if err == nil {
		return said
	}
	first := "an error, then "
	if c.kind.cut == redistest.AfterReply {
		first = ""
		if !c.point.more {
			c.t.Errorf("an error in spite of the reply: %v", err)
		}
	}
	c.inside(func() {
		redistest.WaitFor(c.t, faultPatience, "a call that succeeds", func() bool {
			said, err = call(c.t.Context())
			return err == nil
		})
	})
	return first + said
}
