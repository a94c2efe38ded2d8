package xstreamq

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func promote(page, limit int64) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runPromote(e.ctx, e.redis, e.keys, promoteArgs{Page: page, Cap: limit})
	}
}

// member is a member of a delayed zset, as a command has it.
func member(id string, fields ...string) string {
	return strconv.Quote(id + "\x00" + wire.Pack(fields))
}

// delayedOne is a delayed message, due at score; failedOne one that failed.
func delayedOne(score, body string) string {
	return "ZADD @delayed " + score + " " + member("d"+body+"-ff", "body", body, "oid", "d"+body+"-ff", "pub", "9") + "\n"
}

func failedOne(score, body string) string {
	return "ZADD @backoff " + score + " " + member(body+"-0", "body", body, "oid", body+"-0", "rc", "2", "err", "boom") + "\n"
}

func TestScriptPromote(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{name: "nothing there", call: promote(100, 0), reply: "[0 0 -1 []]"},
		{
			name: "what is due, in its order", before: delayedOne("6", "2") + delayedOne("5", "1") + failedOne("4", "8") + failedOne("3", "7"),
			call: promote(100, 0), reply: "[2 2 -1 []]",
			after: `
				queue
				  * body=1 oid=d1-ff pub=9
				  * body=2 oid=d2-ff pub=9
				retry
				  * body=7 oid=7-0 rc=2 err=boom
				  * body=8 oid=8-0 rc=2 err=boom`,
		},
		{
			name: "what is not due stays", before: delayedOne("5", "1") + delayedOne("$now+60000", "2") + failedOne("$now+30000", "7"),
			call: promote(100, 0), reply: "[1 0 2… []]",
			after: `
				queue
				  * body=1 oid=d1-ff pub=9
				delayed
				  now+60s d2-ff body=2 oid=d2-ff pub=9
				backoff
				  now+30s 7-0 body=7 oid=7-0 rc=2 err=boom`,
		},
		{name: "a far-future head", before: delayedOne("253402300799999", "1"), call: promote(100, 0), reply: "[0 0 25… []]"},
		{
			name: "one page", before: delayedOne("5", "1") + delayedOne("6", "2") + delayedOne("7", "3"),
			call: promote(2, 0), reply: "[2 0 0 []]",
			after: `
				queue
				  * body=1 oid=d1-ff pub=9
				  * body=2 oid=d2-ff pub=9
				delayed
				  7 d3-ff body=3 oid=d3-ff pub=9`,
		},
		{
			name: "bytes", before: "ZADD @delayed 5 " + member("d1-ff", "body", "\x00\xff\r\n", "", "\x00", "x", "1", "x", "2"),
			call: promote(100, 0), reply: "[1 0 -1 []]",
			after: `
				queue
				  * body="\x00\xff\r\n" ""="\x00" x=1 x=2`,
		},
		{
			name: "groups and pending rows of the streams stay", before: held + "\n" + heldAgain + "\n" + delayedOne("5", "1") + failedOne("4", "8"),
			call: promote(100, 0), reply: "[1 1 -1 []]",
			after: `
				queue
				  1-0 body=a
				  * body=1 oid=d1-ff pub=9
				  g at 1-0: c
				    1-0 c x1
				retry
				  5-0 body=a h:k=v oid=1-0 rc=2 lc=1 err=boom
				  * body=8 oid=8-0 rc=2 err=boom
				  g-retry at 5-0: c
				    5-0 c x1`,
		},
	})
}

func TestScriptPromoteMistakes(t *testing.T) {
	bad := func(zset, m, shown string) scriptCase {
		return scriptCase{
			name: "not an entry: " + shown, before: "ZADD " + zset + " 1 " + strconv.Quote(m) + "\n" + delayedOne("5", "1") + failedOne("4", "8"),
			call: promote(100, 0), reply: `[1 1 … ["XQBAD a member of ` + zset + ` is not a packed entry, or has too many fields"]]`,
			after: "queue\n  * body=1 oid=d1-ff pub=9\nretry\n  * body=8 oid=8-0 rc=2 err=boom\n" + zset[1:] + "\n  now+60s " + shown,
		}
	}
	last := "18446744073709551615-18446744073709551615"
	runScriptCases(t, []scriptCase{
		bad("@delayed", "x", "x"),
		bad("@backoff", "no nul 4:body1:a", `"no nul 4:body1:a"`),
		bad("@delayed", "d1-ff\x004:body", `"d1-ff\x004:body"`),
		bad("@delayed", "d1-ff\x004:body9:a", `"d1-ff\x004:body9:a"`),
		bad("@delayed", "d1-ff\x004:body2:a", `"d1-ff\x004:body2:a"`),
		bad("@delayed", "d1-ff\x00-1:x", `"d1-ff\x00-1:x"`),
		bad("@delayed", "d1-ff\x001e1:x", `"d1-ff\x001e1:x"`),
		bad("@backoff", "d1-ff\x00", "d1-ff"),
		{
			name: "delayed of the wrong type", before: "SET @delayed x\n" + failedOne("4", "8"),
			call: promote(100, 0), reply: `[0 1 -1 ["XQTYPE key @delayed holds a string, not a zset"]]`,
			after: `
				retry
				  * body=8 oid=8-0 rc=2 err=boom
				delayed x`,
		},
		{
			name: "queue of the wrong type", before: "SET @queue x\n" + delayedOne("5", "1") + failedOne("4", "8"),
			call: promote(100, 0), reply: `[0 1 -1 ["XQTYPE key @queue holds a string, not a stream"]]`,
			after: `
				queue x
				retry
				  * body=8 oid=8-0 rc=2 err=boom
				delayed
				  5 d1-ff body=1 oid=d1-ff pub=9`,
		},
		{
			name: "backoff of the wrong type", before: "SET @backoff x\n" + delayedOne("5", "1"),
			call: promote(100, 0), reply: `[1 0 -1 ["XQTYPE key @backoff holds a string, not a zset"]]`,
			after: `
				queue
				  * body=1 oid=d1-ff pub=9
				backoff x`,
		},
		{
			name: "retry stream of the wrong type", before: "SET @retry x\n" + delayedOne("5", "1") + failedOne("4", "8"),
			call: promote(100, 0), reply: `[1 0 -1 ["XQTYPE key @retry holds a string, not a stream"]]`,
			after: `
				queue
				  * body=1 oid=d1-ff pub=9
				retry x
				backoff
				  4 8-0 body=8 oid=8-0 rc=2 err=boom`,
		},
		{
			name: "retry stream takes no more ids", before: "XADD @retry " + last + " body z\n" + delayedOne("5", "1") + failedOne("4", "8") + failedOne("5", "9"),
			call: promote(100, 0), reply: "[1 0 0 […]]",
			after: `
				queue
				  * body=1 oid=d1-ff pub=9
				retry
				  ` + last + ` body=z
				backoff
				  4 8-0 body=8 oid=8-0 rc=2 err=boom
				  5 9-0 body=9 oid=9-0 rc=2 err=boom`,
			gap: gapUpvalue,
		},
	})
}

func TestScriptPromoteBounds(t *testing.T) {
	body := strings.Repeat("x", 400<<10)
	large := times(5, "ZADD @delayed %d "+member("d1-ff%d", "body", body))
	runScriptCases(t, []scriptCase{
		{
			name: "a full retry stream takes no more", before: "XADD @retry 1-0 body r\n" + failedOne("4", "8") + failedOne("5", "9") + failedOne("6", "10"),
			call: promote(100, 2), reply: `[0 1 0 ["XQFULL @retry holds RetryMaxLen messages; this one stays where it is"]]`,
			after: `
				retry
				  1-0 body=r
				  * body=8 oid=8-0 rc=2 err=boom
				backoff
				  5 9-0 body=9 oid=9-0 rc=2 err=boom
				  6 10-0 body=10 oid=10-0 rc=2 err=boom`,
			gap: gapUpvalue,
		},
		{
			name: "the queue has no cap", before: "XADD @queue 1-0 body r\n" + delayedOne("5", "1"),
			call: promote(100, 1), reply: `[1 0 -1 []]`,
			after: `
				queue
				  1-0 body=r
				  * body=1 oid=d1-ff pub=9`,
		},
		{
			name: "bytes", before: large, call: promote(100, 0), reply: `[3 0 0 []]`,
			after: "queue\n" + times(3, "  * body="+show(body)) + "delayed\n  4 d1-ff4 body=" + show(body) + "\n  5 d1-ff5 body=" + show(body),
		},
	})
}

// An entry that failed with many fields, and was packed for it, comes back.
func TestScriptPromoteManyFields(t *testing.T) {
	fields := strings.Fields(manyFields(3400))
	runScriptCases(t, []scriptCase{{
		name: "as many as fit", before: "ZADD @backoff 5 " + member("1-0", fields...),
		call: promote(100, 0), reply: "[0 1 -1 []]",
		after: "retry\n  * " + brief(fields),
		gap:   gapManyValues,
	}})
}
