package xstreamq

import (
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// later is a sweep without a lock.
func later(change func(*reclaimArgs)) scriptCall {
	return sweep(func(a *reclaimArgs) {
		a.Start = "0-0"
		if change != nil {
			change(a)
		}
	})
}

// lapse puts the lease of entries on the queue 10 s past its end.
func lapse(ids string) string {
	return "\nXCLAIM @queue g w~20000 0 " + ids + " IDLE 30000 RETRYCOUNT 1 JUSTID\n"
}

func TestScriptReclaimDeleted(t *testing.T) {
	const buried = `[1 now "" 0 0 0 0 ["* body-lost"] []]`
	runScriptCases(t, []scriptCase{
		{
			name: "a tombstone", before: expired + "XDEL @queue 1-0", call: later(nil), reply: buried,
			after: `
				queue
				  g at 1-0: c w~20000
				dlq
				  * oid=1-0 reason=body-lost at=now from=1-0 by=w~20000`,
		},
		{
			name: "also of what was to be released", before: strings.Replace(expired, "RETRYCOUNT 1", "RETRYCOUNT 0", 1) + "XTRIM @queue MAXLEN 0",
			call: later(nil), reply: buried,
			after: `
				queue
				  g at 1-0: c w~20000
				dlq
				  * oid=1-0 reason=body-lost at=now from=1-0 by=w~20000`,
		},
		{
			name: "on the retry stream", before: expiredAgain + "XDEL @retry 5-0",
			call: sweepRetry(func(a *reclaimArgs) { a.Start = "0-0" }), reply: buried,
			after: `
				retry
				  g-retry at 5-0: c w~20000
				dlq
				  * oid=5-0 reason=body-lost at=now from=5-0 by=w~20000`,
		},
		{name: "not before its lease is over", before: held + "\nXDEL @queue 1-0", call: later(nil), reply: `[1 now "" 0 0 0 0 [] []]`},
	})
}

func TestScriptReclaimForeign(t *testing.T) {
	foreign := func(fields string) string {
		return "XADD @queue 1-0 " + fields + "\nXGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >" + lapse("1-0")
	}
	flat := append([]string{"body", "a"}, strings.Fields(manyFields(4100))...)
	const moved = `[1 now "" 1 0 0 0 [] []]`
	runScriptCases(t, []scriptCase{
		{
			name: "no body", before: foreign("x 1"), call: later(nil), reply: `[1 now "" 0 0 0 0 ["* no-body"] []]`,
			after: `
				queue
				  1-0 x=1
				  g at 1-0: c w~20000
				dlq
				  * x=1 oid=1-0 reason=no-body at=now from=1-0 by=w~20000`,
		},
		{
			name: "an empty body is one", before: foreign(`body ""`), call: later(nil), reply: moved,
			after: `
				queue
				  1-0 body=""
				  g at 1-0: c w~20000
				retry
				  * body="" oid=1-0 lc=1 err="lease lost by w~20000"`,
		},
		{
			name: "forged counters and id", before: foreign("rc 99 lc 99 oid x body a err e"), call: later(nil), reply: moved,
			after: `
				queue
				  1-0 rc=99 lc=99 oid=x body=a err=e
				  g at 1-0: c w~20000
				retry
				  * body=a oid=1-0 lc=1 err="lease lost by w~20000"`,
		},
		{
			name: "a promoted message keeps its id and time", before: foreign("body a oid d1-ff pub 5"), call: later(nil), reply: moved,
			after: `
				queue
				  1-0 body=a oid=d1-ff pub=5
				  g at 1-0: c w~20000
				retry
				  * body=a oid=d1-ff pub=5 lc=1 err="lease lost by w~20000"`,
		},
		{
			name: "names twice, and bytes", before: foreign(`x 1 body "\x00\xff" x 2 body b "" "\x00"`), call: later(nil), reply: moved,
			after: `
				queue
				  1-0 x=1 body="\x00\xff" x=2 body=b ""="\x00"
				  g at 1-0: c w~20000
				retry
				  * x=1 body="\x00\xff" x=2 body=b ""="\x00" oid=1-0 lc=1 err="lease lost by w~20000"`,
		},
		{
			name: "many fields", before: foreign(strings.Join(flat, " ")), call: later(nil), reply: moved,
			after: "queue\n  1-0 " + brief(flat) + "\n  g at 1-0: c w~20000\nretry\n  * body=a xq:packed=" + show(wire.Pack(flat[2:])) +
				` oid=1-0 lc=1 err="lease lost by w~20000"`,
			gap: gapManyValues,
		},
	})
}

// One message that cannot be moved stays; the others go.
func TestScriptReclaimTargets(t *testing.T) {
	// 5-0 lost a lease before and waits next, 6-0 has no body and is dead, 7-0 goes to the retry stream again.
	const three = `
		XADD @retry 5-0 body a oid 1-0 lc 1
		XADD @retry 6-0 x 1
		XADD @retry 7-0 body b oid 2-0
		XGROUP CREATE @retry g-retry 0
		XREADGROUP GROUP g-retry c STREAMS @retry >
		XCLAIM @retry g-retry w~20000 0 5-0 6-0 7-0 IDLE 30000 RETRYCOUNT 1 JUSTID
		`
	again := sweepRetry(func(a *reclaimArgs) { a.Start = "0-0" })
	const last = "18446744073709551615-18446744073709551615"
	runScriptCases(t, []scriptCase{
		{
			name: "backoff of the wrong type", before: three + "SET @backoff x", call: again,
			reply: `[1 now "" 1 0 0 0 ["* no-body"] ["5-0 XQTYPE key @backoff holds a string, not a zset"]]`,
			after: `
				retry
				  5-0 body=a oid=1-0 lc=1
				  * body=b oid=2-0 lc=1 err="lease lost by w~20000"
				  g-retry at 7-0: c w~20000
				    5-0 w~20000 x1 idle 30s
				dlq
				  * x=1 oid=6-0 reason=no-body at=now from=6-0 by=w~20000
				backoff x`,
		},
		{
			name: "dead letters of the wrong type", before: three + "SET @dlq x", call: again,
			reply: `[1 now "" 1 1 0 0 [] ["6-0 XQTYPE key @dlq holds a string, not a stream"]]`,
			after: `
				retry
				  6-0 x=1
				  * body=b oid=2-0 lc=1 err="lease lost by w~20000"
				  g-retry at 7-0: c w~20000
				    6-0 w~20000 x1 idle 30s
				dlq x
				backoff
				  … 1-0 body=a oid=1-0 lc=2 err="lease lost by w~20000"`,
		},
		{
			name: "dead letters take no more ids", before: three + "XADD @dlq " + last + " body z", call: again,
			reply: `[1 now "" 1 1 0 0 [] [… …]]`,
			after: `
				retry
				  6-0 x=1
				  * body=b oid=2-0 lc=1 err="lease lost by w~20000"
				  g-retry at 7-0: c w~20000
				    6-0 w~20000 x1 idle 30s
				dlq
				  ` + last + ` body=z
				backoff
				  … 1-0 body=a oid=1-0 lc=2 err="lease lost by w~20000"`,
		},
		{
			name: "retry stream of the wrong type", before: heldMany + lapse("1-0 2-0 3-0") + "XDEL @queue 2-0\nSET @retry x", call: later(nil),
			reply: `[1 now "" 0 0 0 0 ["* body-lost"] ["1-0 XQTYPE key @retry holds a string, not a stream" "3-0 XQTYPE key @retry holds a string, not a stream"]]`,
			after: `
				queue
				  1-0 body=a
				  3-0 body=c
				  g at 3-0: c w~20000
				    1-0 w~20000 x1 idle 30s
				    3-0 w~20000 x1 idle 30s
				retry x
				dlq
				  * oid=2-0 reason=body-lost at=now from=2-0 by=w~20000`,
		},
		{
			name: "a full retry stream", before: heldMany + lapse("1-0 2-0 3-0"), call: later(func(a *reclaimArgs) { a.Cap = 2 }),
			reply: `[1 now "" 2 0 0 0 [] ["3-0 XQFULL @retry holds RetryMaxLen messages; this one stays where it is"]]`,
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  3-0 body=c
				  g at 3-0: c w~20000
				    3-0 w~20000 x1 idle 30s
				retry
				  * body=a oid=1-0 lc=1 err="lease lost by w~20000"
				  * body=b oid=2-0 lc=1 err="lease lost by w~20000"`,
		},
		{
			name: "a full retry stream takes no release", before: strings.Replace(expired, "RETRYCOUNT 1", "RETRYCOUNT 0", 1) + "XADD @retry 1-0 body r",
			call:  later(func(a *reclaimArgs) { a.Cap = 1 }),
			reply: `[1 now "" 0 0 0 0 [] ["1-0 XQFULL @retry holds RetryMaxLen messages; this one stays where it is"]]`,
		},
		{
			name: "within a full retry stream there is room", before: strings.Replace(expiredAgain, " lc 1", "", 1),
			call:  sweepRetry(func(a *reclaimArgs) { a.Start, a.Cap = "0-0", 1 }),
			reply: `[1 now "" 1 0 0 0 [] []]`,
			after: `
				retry
				  * body=a h:k=v oid=1-0 rc=2 lc=1 err="lease lost by w~20000"
				  g-retry at 5-0: c w~20000`,
		},
	})
}
