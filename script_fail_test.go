package xstreamq

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// held is one message that consumer c of group g is handling.
const held = `
	XADD @queue 1-0 body a
	XGROUP CREATE @queue g 0
	XREADGROUP GROUP g c STREAMS @queue >`

// heldAgain is one message that c got from the retry stream: it failed twice and lost one lease.
const heldAgain = `
	XADD @retry 5-0 body a h:k v oid 1-0 rc 2 lc 1 err boom
	XGROUP CREATE @retry g-retry 0
	XREADGROUP GROUP g-retry c STREAMS @retry >`

func fail(a failArgs) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		if a.Ours {
			e = e.onRetry()
		}
		return runFail(e.ctx, e.redis, e.keys, a)
	}
}

// failing is the plain failure of message 1-0 of held, the first of six.
func failing(change func(*failArgs)) scriptCall {
	a := failArgs{Group: "g", Consumer: "c", ID: "1-0", Spend: 1, Budget: 5, Delay: 60000, Err: "boom"}
	if change != nil {
		change(&a)
	}
	return fail(a)
}

func TestScriptFailMoves(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{
			name: "waits out its backoff", before: held,
			call:  failing(nil),
			reply: `[1 ""]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				backoff
				  now+60s 1-0 body=a oid=1-0 rc=1 err=boom`,
		},
		{
			name: "other messages and groups stay", before: held + `
				XGROUP CREATE @queue h 0
				XREADGROUP GROUP h c STREAMS @queue >
				XADD @queue 2-0 body b
				XREADGROUP GROUP g d STREAMS @queue >
				ZADD @backoff 7 "0-1\x00"`,
			call:  failing(nil),
			reply: `[1 ""]`,
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  g at 2-0: c d
				    2-0 d x1
				  h at 1-0: c
				    1-0 c x1
				backoff
				  7 0-1
				  now+60s 1-0 body=a oid=1-0 rc=1 err=boom`,
		},
		{
			name: "without delay", before: held,
			call:  failing(func(a *failArgs) { a.Delay = 0 }),
			reply: `[1 ""]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				backoff
				  now 1-0 body=a oid=1-0 rc=1 err=boom`,
		},
		{
			name: "counters, id and headers go along, the retry stream keeps nothing", before: heldAgain,
			call:  fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Spend: 1, Budget: 5, Delay: 60000, Err: "bang"}),
			reply: `[1 ""]`,
			after: `
				retry
				  g-retry at 5-0: c
				backoff
				  now+60s 1-0 body=a h:k=v oid=1-0 rc=3 lc=1 err=bang`,
		},
		{
			name: "a verdict that is no failure spends nothing and keeps the last error", before: heldAgain,
			call:  fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Budget: -1, Delay: 60000}),
			reply: `[1 ""]`,
			after: `
				retry
				  g-retry at 5-0: c
				backoff
				  now+60s 1-0 body=a h:k=v oid=1-0 rc=2 lc=1 err=boom`,
		},
		{
			name: "dead with its history", before: heldAgain,
			call:  fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Spend: 1, Budget: 2, Err: "bang"}),
			reply: `[2 *]`,
			after: `
				retry
				  g-retry at 5-0: c
				dlq
				  * body=a h:k=v oid=1-0 rc=3 lc=1 err=bang reason=failed at=now from=5-0 by=c`,
		},
		{
			name: "dead at once by verdict", before: held,
			call:  failing(func(a *failArgs) { a.Spend, a.Budget, a.Reason, a.Err = 0, -1, "rejected", "no such order" }),
			reply: `[2 *]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				dlq
				  * body=a oid=1-0 err="no such order" reason=rejected at=now from=1-0 by=c`,
		},
		{
			name: "a reason wins over an unspent budget", before: held,
			call:  failing(func(a *failArgs) { a.Reason = "undecodable" }),
			reply: `[2 *]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				dlq
				  * body=a oid=1-0 rc=1 err=boom reason=undecodable at=now from=1-0 by=c`,
		},
	})
}

func TestScriptFailBudget(t *testing.T) {
	const waits = `
		retry
		  g-retry at 5-0: c
		backoff
		  now+60s 1-0 body=a h:k=v oid=1-0 rc=3 lc=1 err=boom`
	const dead = `
		retry
		  g-retry at 5-0: c
		dlq
		  * body=a h:k=v oid=1-0 rc=3 lc=1 err=boom reason=failed at=now from=5-0 by=c`
	// heldAgain has failed twice, so this is its third failure.
	third := func(budget int64) scriptCall {
		return fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Spend: 1, Budget: budget, Delay: 60000})
	}
	runScriptCases(t, []scriptCase{
		{name: "none", before: heldAgain, call: third(0), reply: `[2 *]`, after: dead},
		{name: "one less", before: heldAgain, call: third(2), reply: `[2 *]`, after: dead},
		{name: "equal", before: heldAgain, call: third(3), reply: `[1 ""]`, after: waits},
		{name: "one more", before: heldAgain, call: third(4), reply: `[1 ""]`, after: waits},
		{name: "without end", before: heldAgain, call: third(-1), reply: `[1 ""]`, after: waits},
		{
			name: "the first failure with none", before: held,
			call:  failing(func(a *failArgs) { a.Budget = 0 }),
			reply: `[2 *]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				dlq
				  * body=a oid=1-0 rc=1 err=boom reason=failed at=now from=1-0 by=c`,
		},
	})
}

func TestScriptFailFence(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{name: "another consumer holds it", before: held + "\nXCLAIM @queue g d 0 1-0 RETRYCOUNT 1", call: failing(nil), reply: `[0 ""]`},
		{name: "acknowledged", before: held + "\nXACK @queue g 1-0", call: failing(nil), reply: `[0 ""]`},
		{name: "never read", before: "XADD @queue 1-0 body a\nXGROUP CREATE @queue g 0", call: failing(nil), reply: `[0 ""]`},
		{name: "held by another group only", before: held + "\nXGROUP CREATE @queue h 0",
			call: failing(func(a *failArgs) { a.Group = "h" }), reply: `[0 ""]`},
		{name: "no such group", before: held, call: failing(func(a *failArgs) { a.Group = "h" }), reply: "error NOGROUP…"},
		{name: "no such stream", before: "", call: failing(nil), reply: "error NOGROUP…"},
		{name: "a reason does not open the fence", before: held,
			call: failing(func(a *failArgs) { a.Consumer, a.Reason = "d", "rejected" }), reply: `[0 ""]`},
		{name: "a copy does not open the fence", before: held + "\nXDEL @queue 1-0\nXCLAIM @queue g d 0 1-0 RETRYCOUNT 1",
			call: failing(func(a *failArgs) { a.Held = "4:body1:a" }), reply: `[0 ""]`},
	})
}

func TestScriptFailTargets(t *testing.T) {
	last := "18446744073709551615-18446744073709551615"
	dead := failing(func(a *failArgs) { a.Budget = 0 })
	runScriptCases(t, []scriptCase{
		{name: "backoff is a string", before: held + "\nSET @backoff x", call: failing(nil),
			reply: `error XQTYPE key @backoff holds a string, not a zset`},
		{name: "dead letters are a string", before: held + "\nSET @dlq x", call: dead,
			reply: `error XQTYPE key @dlq holds a string, not a stream`},
		{name: "dead letters are a list", before: held + "\nRPUSH @dlq x", call: dead,
			reply: `error XQTYPE key @dlq holds a list, not a stream`},
		{name: "queue is a string", before: "SET @queue x", call: failing(nil), reply: "error WRONGTYPE…"},
		{name: "dead letters take no more ids", before: held + "\nXADD @dlq " + last + " body z", call: dead, reply: "error …"},
		{
			name: "only the target of this outcome matters", before: held + "\nSET @dlq x",
			call:  failing(nil),
			reply: `[1 ""]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				dlq x
				backoff
				  now+60s 1-0 body=a oid=1-0 rc=1 err=boom`,
		},
	})
}

func TestScriptFailDeleted(t *testing.T) {
	const gone = held + "\nXDEL @queue 1-0"
	packed := wire.Pack([]string{"body", "a", "h:k", "v"})
	runScriptCases(t, []scriptCase{
		{name: "the worker sent no copy", before: gone, call: failing(nil), reply: `[3 ""]`},
		{name: "the copy cannot be read", before: gone, call: failing(func(a *failArgs) { a.Held = "5:body1:a" }),
			reply: "error XQBAD the packed entry of 1-0 cannot be read"},
		{
			name: "the copy waits", before: gone,
			call:  failing(func(a *failArgs) { a.Held = packed }),
			reply: `[1 ""]`,
			after: `
				queue
				  g at 1-0: c
				backoff
				  now+60s 1-0 body=a h:k=v oid=1-0 rc=1 err=boom`,
		},
		{
			name: "the copy is dead", before: gone,
			call:  failing(func(a *failArgs) { a.Held, a.Budget = packed, 0 }),
			reply: `[2 *]`,
			after: `
				queue
				  g at 1-0: c
				dlq
				  * body=a h:k=v oid=1-0 rc=1 err=boom reason=failed at=now from=1-0 by=c`,
		},
		{
			name: "the copy of a redelivery keeps its counters", before: heldAgain + "\nXDEL @retry 5-0",
			call: fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Spend: 1, Budget: 5, Delay: 60000,
				Held: wire.Pack([]string{"body", "a", "oid", "1-0", "rc", "2", "lc", "1", "err", "boom"})}),
			reply: `[1 ""]`,
			after: `
				retry
				  g-retry at 5-0: c
				backoff
				  now+60s 1-0 body=a oid=1-0 rc=3 lc=1 err=boom`,
		},
		{
			name: "trimmed away", before: held + "\nXTRIM @queue MAXLEN 0",
			call:  failing(func(a *failArgs) { a.Held = packed }),
			reply: `[1 ""]`,
			after: `
				queue
				  g at 1-0: c
				backoff
				  now+60s 1-0 body=a h:k=v oid=1-0 rc=1 err=boom`,
		},
	})
}

// A stranger's entry goes on as it was; only the names of the envelope are ours to write.
func TestScriptFailForeign(t *testing.T) {
	entry := func(fields string) string {
		return "XADD @queue 1-0 " + fields + "\nXGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >"
	}
	waits := func(fields string) string {
		return "queue\n  1-0 FOREIGN\n  g at 1-0: c\nbackoff\n  now+60s " + fields
	}
	foreign := func(name, fields, after string) scriptCase {
		shown := strings.NewReplacer(" ", "=").Replace
		var pairs []string
		words := strings.Fields(fields)
		for i := 0; i < len(words); i += 2 {
			pairs = append(pairs, shown(strings.Join(words[i:i+2], " ")))
		}
		return scriptCase{name: name, before: entry(fields), call: failing(nil), reply: `[1 ""]`,
			after: strings.Replace(waits(after), "FOREIGN", strings.Join(pairs, " "), 1)}
	}
	runScriptCases(t, []scriptCase{
		foreign("rc 99", "body a rc 99 lc 98", "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("rc NaN", "rc NaN body a lc NaN", "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("rc -1", "body a rc -1 lc -1", "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("rc 1e400", "body a rc 1e400 lc 1e400", "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("every reserved name", "pub 5 rc 1 lc 1 err e reason failed at 1 from 7-7 by me body a",
			"1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("forged id", "body a oid x", "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("forged id of an entry", "body a oid 7-7", "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("id of a delayed message", "body a oid d1-ff pub 5", "d1-ff body=a oid=d1-ff pub=5 rc=1 err=boom"),
		foreign("not quite that of a delayed message", "body a oid d1-FF", "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("as long as one may be", "body a oid d1-"+strings.Repeat("f", 61), "d1-"+strings.Repeat("f", 61)+" body=a oid=d1-"+strings.Repeat("f", 61)+" rc=1 err=boom"),
		foreign("too long for one", "body a oid d1-"+strings.Repeat("f", 62), "1-0 body=a oid=1-0 rc=1 err=boom"),
		foreign("a second id does not undo the first", "body a oid d1-ff oid x", "d1-ff body=a oid=d1-ff rc=1 err=boom"),
		foreign("names twice", "body a x 1 body b x 2 x 1", "1-0 body=a x=1 body=b x=2 x=1 oid=1-0 rc=1 err=boom"),
		foreign("no body", "x 1", "1-0 x=1 oid=1-0 rc=1 err=boom"),
		{
			name: "bytes", before: entry(`body "a\x00\xff\r\n" "\x00\xfe" "" "" "\xff"`),
			call:  failing(func(a *failArgs) { a.Err = "b\x00\xffm" }),
			reply: `[1 ""]`,
			after: `
				queue
				  1-0 body="a\x00\xff\r\n" "\x00\xfe"="" ""="\xff"
				  g at 1-0: c
				backoff
				  now+60s 1-0 body="a\x00\xff\r\n" "\x00\xfe"="" ""="\xff" oid=1-0 rc=1 err="b\x00\xffm"`,
		},
	})
}

// More fields than fit between Lua and a command are packed into one; nothing of them is lost.
func TestScriptFailManyFields(t *testing.T) {
	many := func(n int) []string { return append([]string{"body", "a"}, strings.Fields(manyFields(n))...) }
	before := func(flat []string) string {
		return "XADD @queue 1-0 " + strings.Join(flat, " ") + "\nXGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >"
	}
	after := func(flat []string, rest string) string {
		return "queue\n  1-0 " + brief(flat) + "\n  g at 1-0: c\n" + rest
	}
	packed := func(flat []string) string {
		return "body=a xq:packed=" + show(wire.Pack(flat[2:])) + " oid=1-0 rc=1 err=boom"
	}
	all := many(4100)
	bodies := append(many(4100), "body", "b", "f1", "again")
	fit, over := many(3499), many(3500)
	runScriptCases(t, []scriptCase{
		{name: "waits", gap: gapManyValues, before: before(all), call: failing(nil), reply: `[1 ""]`,
			after: after(all, "backoff\n  now+60s 1-0 "+packed(all))},
		{name: "dead", gap: gapManyValues, before: before(all), call: failing(func(a *failArgs) { a.Budget = 0 }), reply: `[2 *]`,
			after: after(all, "dlq\n  * "+packed(all)+" reason=failed at=now from=1-0 by=c")},
		{name: "names twice", gap: gapManyValues, before: before(bodies), call: failing(nil), reply: `[1 ""]`,
			after: after(bodies, "backoff\n  now+60s 1-0 "+packed(bodies))},
		{name: "as many as fit", gap: gapManyValues, before: before(fit), call: failing(func(a *failArgs) { a.Budget = 0 }), reply: `[2 …]`,
			after: after(fit, "dlq\n  * <3507 fields …>")},
		{name: "one more", gap: gapManyValues, before: before(over), call: failing(func(a *failArgs) { a.Budget = 0 }), reply: `[2 *]`,
			after: after(over, "dlq\n  * "+packed(over)+" reason=failed at=now from=1-0 by=c")},
		{
			name:   "packed once",
			before: strings.Replace(heldAgain, "h:k v", "xq:packed "+wire.Pack(all[2:6]), 1),
			call:   fail(failArgs{Group: "g-retry", Consumer: "c", ID: "5-0", Ours: true, Spend: 1, Budget: 5, Delay: 60000}),
			reply:  `[1 ""]`,
			after: `
				retry
				  g-retry at 5-0: c
				backoff
				  now+60s 1-0 body=a xq:packed=2:f02:v02:f12:v1 oid=1-0 rc=3 lc=1 err=boom`,
		},
	})
}
