package xstreamq

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// whenFull makes a call while the server is over its maxmemory.
func whenFull(t *testing.T, call scriptCall) scriptCall {
	set := func(e scriptEnv, limit string) {
		t.Helper()
		if err := e.redis.Do(e.ctx, e.redis.B().Arbitrary("CONFIG", "SET", "maxmemory", limit).Build()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	return func(e scriptEnv) rueidis.RedisResult {
		set(e, "1")
		defer set(e, "0")
		return call(e)
	}
}

// A full server refuses what is new. What is there can be ended, moved and trimmed, or it would stay full.
func TestScriptFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--maxmemory-policy", "noeviction"}})
	s := scriptServer{name: "redis", redis: redistest.Dial(t, server.URL()), prefix: "p:"}
	cases := []scriptCase{
		{name: "publish is refused", call: publish("at", "7", "01", "4:body1:a"), reply: "error OOM…"},
		{name: "publish to a set that is there is refused", before: "ZADD @delayed 1 x", call: publish("at", "7", "01", "4:body1:a"), reply: "error OOM…"},
		{name: "register is refused", call: register("q/g", `{"queue":"q"`), reply: "error OOM…"},
		{name: "a worker can begin", call: create("g", "0-0"), reply: "1", after: "queue\n  g at 0-0:"},
		{
			name: "a failure waits", before: held, call: failing(nil), reply: `[1 ""]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				backoff
				  now+60s 1-0 body=a oid=1-0 rc=1 err=boom`,
		},
		{
			name: "a failure is dead", before: heldAgain,
			call:  fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Spend: 1, Budget: 2, Err: "bang"}),
			reply: `[2 *]`,
			after: `
				retry
				  g-retry at 5-0: c
				dlq
				  * body=a h:k=v oid=1-0 rc=3 lc=1 err=bang reason=failed at=now from=5-0 by=c`,
		},
		{
			name: "release", before: held, call: releaseIDs(0, "1-0"), reply: `[1]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				retry
				  * body=a oid=1-0`,
		},
		{
			name: "reclaim, without a lock", before: expired, call: sweep(nil), reply: `[1 now "" 1 0 0 0 [] []]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c w~20000
				retry
				  * body=a oid=1-0 lc=1 err="lease lost by w~20000"`,
		},
		{
			name: "reclaim to the dead letters", before: expired + "XDEL @queue 1-0\nSET @lock 1 PX 20000", call: sweep(nil),
			reply: `[1 now "" 0 0 0 0 ["* body-lost"] []]`,
			after: `
				queue
				  g at 1-0: c w~20000
				dlq
				  * oid=1-0 reason=body-lost at=now from=1-0 by=w~20000
				lock 1 for 20s`,
		},
		{
			name: "promote", before: delayedOne("5", "1") + failedOne("4", "8"), call: promote(100, 0), reply: "[1 1 -1 []]",
			after: `
				queue
				  * body=1 oid=d1-ff pub=9
				retry
				  * body=8 oid=8-0 rc=2 err=boom`,
		},
		{
			name: "compact", before: times(300, "XADD @queue %d-0 body a") + "XGROUP CREATE @queue g 201-0",
			call: compact(compactArgs{Groups: []string{"g"}}), reply: `[200 "" 0 0]`,
			after: "queue\n" + span(201, 300, "  %d-0 body=a") + "  g at 201-0:",
		},
		{
			name: "a success, with its marker", before: held, call: ack(ackArgs{Group: "g", Keep: 600_000, IDs: []string{"1-0", "1-0"}}), reply: "1",
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				done
				  now+600s 1-0`,
		},
		{
			name: "leases are renewed", before: idling, call: extend(modeStarted, "1-0", "2-0"), reply: `[1 1]`,
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  3-0 body=c
				  g at 3-0: c d
				    1-0 c x1
				    2-0 c x1
				    3-0 d x1 idle 30s`,
		},
		{
			name: "consumers are deleted", before: "XGROUP CREATE @queue g 0-0 MKSTREAM\nXGROUP CREATECONSUMER @queue g c", call: reap("c"), reply: "1",
			after: "queue\n  g at 0-0:",
		},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "consumers are deleted" && redistest.Major(t, s.redis) < 7 {
				t.Skip("SKIPPED: this server deletes no consumer when it is full")
			}
			c.call = whenFull(t, c.call)
			s.run(t, i, c)
		})
	}
}
