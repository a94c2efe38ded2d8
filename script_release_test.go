package xstreamq

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// heldMany are messages 1-0 to 3-0 that c is handling.
const heldMany = `
	XADD @queue 1-0 body a
	XADD @queue 2-0 body b
	XADD @queue 3-0 body c
	XGROUP CREATE @queue g 0
	XREADGROUP GROUP g c STREAMS @queue >`

func release(a releaseArgs) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		if a.Ours {
			e = e.onRetry()
		}
		return runRelease(e.ctx, e.redis, e.keys, a)
	}
}

func releaseIDs(limit int64, ids ...string) scriptCall {
	return release(releaseArgs{Group: "g", Consumer: "c", Cap: limit, IDs: ids})
}

func TestScriptRelease(t *testing.T) {
	again := release(releaseArgs{Group: "g-retry", Consumer: "c", Ours: true, IDs: []string{"5-0"}})
	runScriptCases(t, []scriptCase{
		{
			name: "goes to the retry stream, counters as they were", before: held,
			call: releaseIDs(0, "1-0"), reply: `[1]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				retry
				  * body=a oid=1-0`,
		},
		{
			name: "from the retry stream to its end", before: heldAgain + "\nXADD @retry 6-0 body b oid 2-0",
			call: again, reply: `[1]`,
			after: `
				retry
				  6-0 body=b oid=2-0
				  * body=a h:k=v oid=1-0 rc=2 lc=1 err=boom
				  g-retry at 5-0: c`,
		},
		{
			name: "what is not held stays, the rest goes", before: heldMany + `
				XACK @queue g 1-0
				XCLAIM @queue g d 0 2-0 RETRYCOUNT 1
				XADD @queue 4-0 body d`,
			call: releaseIDs(0, "1-0", "2-0", "3-0", "4-0", "9-9"), reply: `[0 0 1 0 0]`,
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  3-0 body=c
				  4-0 body=d
				  g at 3-0: c d
				    2-0 d x1
				retry
				  * body=c oid=3-0`,
		},
		{
			name: "twice in one call", before: held,
			call: releaseIDs(0, "1-0", "1-0"), reply: `[1 0]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				retry
				  * body=a oid=1-0`,
		},
		{
			name: "a deleted entry stays pending, for the sweep to find", before: heldMany + "\nXDEL @queue 2-0",
			call: releaseIDs(0, "2-0", "3-0"), reply: `[0 1]`,
			after: `
				queue
				  1-0 body=a
				  3-0 body=c
				  g at 3-0: c
				    1-0 c x1
				    2-0 c x1
				retry
				  * body=c oid=3-0`,
		},
		{
			name: "a stranger's names and bytes", before: `
				XADD @queue 1-0 x 1 body "\x00\xff" x 2 rc 99 oid x err e
				XGROUP CREATE @queue g 0
				XREADGROUP GROUP g c STREAMS @queue >`,
			call: releaseIDs(0, "1-0"), reply: `[1]`,
			after: `
				queue
				  1-0 x=1 body="\x00\xff" x=2 rc=99 oid=x err=e
				  g at 1-0: c
				retry
				  * x=1 body="\x00\xff" x=2 oid=1-0`,
		},
		{name: "another consumer", before: held, call: release(releaseArgs{Group: "g", Consumer: "d", IDs: []string{"1-0"}}), reply: `[0]`},
		{name: "no such group", before: held, call: release(releaseArgs{Group: "h", Consumer: "c", IDs: []string{"1-0"}}), reply: "[…NOGROUP…]"},
		{name: "no such stream", call: releaseIDs(0, "1-0"), reply: "[…NOGROUP…]"},
		{name: "retry stream of the wrong type", before: held + "\nSET @retry x", call: releaseIDs(0, "1-0"),
			reply: "error XQTYPE key @retry holds a string, not a stream"},
		{name: "queue of the wrong type", before: "SET @queue x", call: releaseIDs(0, "1-0"), reply: "error WRONGTYPE…"},
		{name: "retry stream takes no more ids", before: held + "\nXADD @retry 18446744073709551615-18446744073709551615 body z",
			call: releaseIDs(0, "1-0"), reply: "[…]"},
		{name: "no body at all", before: strings.Replace(held, "body a", "x 1", 1), call: releaseIDs(0, "1-0"), reply: `[1]`,
			after: `
				queue
				  1-0 x=1
				  g at 1-0: c
				retry
				  * x=1 oid=1-0`},
	})
}

func TestScriptReleaseCap(t *testing.T) {
	const full = `"XQFULL @retry holds RetryMaxLen messages; this one stays where it is"`
	runScriptCases(t, []scriptCase{
		{name: "full", before: held + "\nXADD @retry 1-0 body r", call: releaseIDs(1, "1-0"), reply: "[" + full + "]"},
		{
			name: "room for one", before: heldMany + "\nXADD @retry 1-0 body r",
			call: releaseIDs(2, "1-0", "2-0", "3-0"), reply: "[1 " + full + " " + full + "]",
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  3-0 body=c
				  g at 3-0: c
				    2-0 c x1
				    3-0 c x1
				retry
				  1-0 body=r
				  * body=a oid=1-0`,
		},
		{
			name: "within the retry stream there is always room", before: heldAgain,
			call:  release(releaseArgs{Group: "g-retry", Consumer: "c", Ours: true, Cap: 1, IDs: []string{"5-0"}}),
			reply: `[1]`,
			after: `
				retry
				  * body=a h:k=v oid=1-0 rc=2 lc=1 err=boom
				  g-retry at 5-0: c`,
		},
	})
}

// A call copies 1 MiB and says how far it came.
func TestScriptReleaseBounded(t *testing.T) {
	body := strings.Repeat("x", 400<<10)
	before := times(5, "XADD @queue %d-0 body "+body) + "XGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >"
	large := "body=" + show(body)
	runScriptCases(t, []scriptCase{{
		name: "bytes", before: before, call: releaseIDs(0, "1-0", "2-0", "3-0", "4-0", "5-0"), reply: `[1 1 1]`,
		after: "queue\n" + strings.TrimSuffix(times(5, "  %d-0 "+large), "\n") + `
			  g at 5-0: c
			    4-0 c x1
			    5-0 c x1
			retry
			` + "  * " + large + " oid=1-0\n  * " + large + " oid=2-0\n  * " + large + " oid=3-0",
	}})
}
