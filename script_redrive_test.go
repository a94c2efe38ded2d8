package xstreamq

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

func redriving(ids ...string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runRedrive(e.ctx, e.redis, e.keys, redriveArgs{IDs: ids})
	}
}

func publishingAnew(ids ...string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runRedrive(e.ctx, e.redis, e.keys, redriveArgs{Anew: true, IDs: ids})
	}
}

// deadOne is a dead letter with all that one can have, between a stranger's fields.
const deadOne = `
	XADD @dlq 9-0 x 1 body "a\x00\xff" h:k v x 2 oid 1-0 rc 4 lc 1 err boom reason failed at 5 from 8-0 by c~1`

func TestScriptRedriveToTheGroup(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{
			name: "id, body and a stranger's fields go along, what it failed of stays behind", before: deadOne,
			call: redriving("9-0"), reply: `[1 *]`,
			after: "retry\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2 oid=1-0\ndlq",
		},
		{
			name: "its marker goes, others stay", before: deadOne + "\nZADD @done 7 1-0 8 1-1 9 9-0",
			call: redriving("9-0"), reply: `[1 *]`,
			after: "retry\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2 oid=1-0\ndlq\ndone\n  8 1-1\n  9 9-0",
		},
		{
			name: "a delayed publish keeps when it was published", before: "XADD @dlq 9-0 body a oid d5-ff pub 4 reason failed",
			call: redriving("9-0"), reply: `[1 *]`, after: "retry\n  * body=a oid=d5-ff pub=4\ndlq",
		},
		{
			name: "what says no id has that of its dead letter", before: "XADD @dlq 9-0 body a pub 4",
			call: redriving("9-0"), reply: `[1 *]`, after: "retry\n  * body=a oid=9-0\ndlq",
		},
		{
			name: "names twice", before: `XADD @dlq 9-0 body a rc 1 body b rc 2 "" 1 oid 1-0 "" 2`,
			call: redriving("9-0"), reply: `[1 *]`, after: `retry
				  * body=a body=b ""=1 ""=2 oid=1-0
				dlq`,
		},
		{
			name: "an empty body is one", before: `XADD @dlq 9-0 body "" oid 1-0 reason undecodable`,
			call: redriving("9-0"), reply: `[1 *]`, after: "retry\n  * body=\"\" oid=1-0\ndlq",
		},
		{
			name: "the group's workers find it behind the rest", before: deadOne + "\nXADD @retry 1-0 body r oid 7-0\nXGROUP CREATE @retry g-retry 1-0",
			call: redriving("9-0"), reply: `[1 *]`,
			after: "retry\n  1-0 body=r oid=7-0\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2 oid=1-0\n  g-retry at 1-0:\ndlq",
		},
		{
			name: "each id has its answer", before: `
				XADD @dlq 1-0 body a oid 1-0
				XADD @dlq 2-0 x 1 oid 2-0 reason no-body
				XADD @dlq 3-0 oid 3-0 reason body-lost
				XADD @dlq 4-0 body b oid 4-0
				XADD @dlq 5-0 x 1 reason failed
				XADD @dlq 6-0 body c oid 6-0`,
			call:  redriving("4-0", "2-0", "7-0", "3-0", "5-0", "4-0", "1-0"),
			reply: `[1 * 2 no-body 0 "" 2 body-lost 2 no-body 0 "" 1 *]`,
			after: `
				retry
				  * body=b oid=4-0
				  * body=a oid=1-0
				dlq
				  2-0 x=1 oid=2-0 reason=no-body
				  3-0 oid=3-0 reason=body-lost
				  5-0 x=1 reason=failed
				  6-0 body=c oid=6-0`,
		},
		{
			name: "what was packed on the way stays packed", before: "XADD @dlq 9-0 body a xq:packed 3:h:k1:v oid 1-0 rc 1",
			call: redriving("9-0"), reply: `[1 *]`, after: "retry\n  * body=a xq:packed=3:h:k1:v oid=1-0\ndlq",
		},
		{name: "no dead letters at all", call: redriving("1-0", "2-0"), reply: `[0 "" 0 ""]`},
		{name: "nothing asked", before: deadOne, call: redriving(), reply: `[]`},
	})
}

func TestScriptRedriveToTheQueue(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{
			name: "a new message", before: deadOne + "\nZADD @done 7 1-0\nXADD @queue 1-0 body q\nXGROUP CREATE @queue h $",
			call: publishingAnew("9-0"), reply: `[1 *]`,
			after: "queue\n  1-0 body=q\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2\n  h at 1-0:\ndlq\ndone\n  7 1-0",
		},
		{
			name: "a delayed publish is not delayed again", before: "XADD @dlq 9-0 body a oid d5-ff pub 4 reason failed",
			call: publishingAnew("9-0"), reply: `[1 *]`, after: "queue\n  * body=a\ndlq",
		},
		{
			name: "headers that were packed would be lost", before: "XADD @dlq 9-0 body a xq:packed 3:h:k1:v oid 1-0 rc 1\nXADD @dlq 10-0 body b",
			call: publishingAnew("9-0", "10-0"), reply: `[2 "it has headers in xq:packed, which nobody unpacks on the queue" 1 *]`,
			after: "queue\n  * body=b\ndlq\n  9-0 body=a xq:packed=3:h:k1:v oid=1-0 rc=1",
		},
		{name: "no body", before: "XADD @dlq 9-0 x 1\nXADD @dlq 10-0 reason body-lost", call: publishingAnew("9-0", "10-0", "11-0"),
			reply: `[2 no-body 2 body-lost 0 ""]`},
		{
			name: "the group's own places may be anything", before: deadOne + "\nSET @retry x\nSET @done y",
			call: publishingAnew("9-0"), reply: `[1 *]`,
			after: "queue\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2\nretry x\ndlq\ndone y",
		},
		{name: "queue of the wrong type", before: deadOne + "\nSET @queue x", call: publishingAnew("9-0"),
			reply: "error XQTYPE key @queue holds a string, not a stream"},
		{name: "too many fields", before: "XADD @dlq 9-0 body a oid 1-0" + manyFields(4100), call: publishingAnew("9-0"),
			reply: `[2 "it has too many fields"]`},
	})
}

// Whatever is in the way, a dead letter stays where it is.
func TestScriptRedriveRefusals(t *testing.T) {
	const last = "18446744073709551615-18446744073709551615"
	runScriptCases(t, []scriptCase{
		{name: "dead letters of the wrong type", before: "SET @dlq x", call: redriving("9-0"), reply: "error XQTYPE key @dlq holds a string, not a stream"},
		{name: "retry stream of the wrong type", before: deadOne + "\nSET @retry x", call: redriving("9-0"),
			reply: "error XQTYPE key @retry holds a string, not a stream"},
		{name: "markers of the wrong type", before: deadOne + "\nXADD @done 1-0 a b", call: redriving("9-0"),
			reply: "error XQTYPE key @done holds a stream, not a zset"},
		{
			name: "the queue may be anything", before: deadOne + "\nSET @queue x", call: redriving("9-0"), reply: `[1 *]`,
			after: "queue x\nretry\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2 oid=1-0\ndlq",
		},
		{name: "retry stream takes no more ids", before: deadOne + "\nXADD @retry " + last + " body z", call: redriving("9-0"), reply: "[2 …]"},
		{name: "queue takes no more ids", before: deadOne + "\nXADD @queue " + last + " body z", call: publishingAnew("9-0"), reply: "[2 …]"},
		{name: "what is no id", before: deadOne, call: redriving("x"), reply: "[2 …]"},
	})
}

// Entries of many fields, and ones that were packed when they died.
func TestScriptRedriveManyFields(t *testing.T) {
	many := func(n int) []string { return append([]string{"body", "a"}, strings.Fields(manyFields(n))...) }
	own := []string{"oid", "1-0", "rc", "1", "reason", "failed"}
	fit, over := many(3499), many(3500)
	more := append(slices.Clip(many(4100)), "f1", "again")
	redriven := func(flat []string) string { return brief(append(slices.Clip(flat), "oid", "1-0")) }
	before := func(flat []string) string { return "XADD @dlq 9-0 " + strings.Join(slices.Concat(flat, own), " ") }
	runScriptCases(t, []scriptCase{
		{name: "as many as fit", gap: gapManyValues, before: before(fit), call: redriving("9-0"), reply: `[1 *]`, after: "retry\n  * " + redriven(fit) + "\ndlq"},
		{name: "one more", gap: gapManyValues, before: before(over), call: redriving("9-0"), reply: `[1 *]`,
			after: "retry\n  * body=a xq:packed=" + show(wire.Pack(over[2:])) + " oid=1-0\ndlq"},
		{name: "far more, some twice", gap: gapManyValues, before: before(more), call: redriving("9-0"), reply: `[1 *]`,
			after: "retry\n  * body=a xq:packed=" + show(wire.Pack(more[2:])) + " oid=1-0\ndlq"},
	})
}

// A call stops when it has looked at 1 MiB, and answers for as many as it got to.
func TestScriptRedrivePage(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 400<<10)
	cases := []struct {
		name, before string
		want         string
	}{
		{"small ones", times(100, "XADD @dlq %d-0 body a"), "100"},
		{"large ones", times(5, "XADD @dlq %d-0 body "+large), "3 2"},
		{"large ones that stay", times(5, "XADD @dlq %d-0 x "+large), "3 2"},
		{"one that is larger than a page", times(2, "XADD @dlq %d-0 body "+large+large+large), "1 1"},
		{"many fields", times(3, "XADD @dlq %d-0 body a"+manyFields(3000)), "1 1 1"},
	}
	for _, s := range scriptServers(t) {
		for i, c := range cases {
			if s.embedded && c.name == "many fields" {
				continue // gapManyValues, as TestScriptRedriveManyFields shows
			}
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				e, v := s.env(t, i)
				v.do(c.before, e.now)
				rest := strings.Fields(ids(1, uint64(strings.Count(c.before, "\n"))))
				var pages []string
				for len(rest) > 0 {
					reply, err := redriving(rest...)(e).ToArray()
					if err != nil || len(reply) == 0 {
						t.Fatal(len(reply), err)
					}
					pages = append(pages, fmt.Sprint(len(reply)/2))
					rest = rest[len(reply)/2:]
				}
				if got := strings.Join(pages, " "); got != c.want {
					t.Errorf("pages of %s, want %s", got, c.want)
				}
			})
		}
	}
}

// A full server can be redriven: the copy takes what the dead letter gives back.
func TestScriptRedriveFullServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--maxmemory-policy", "noeviction"}})
	s := scriptServer{name: "redis", redis: redistest.Dial(t, server.URL()), prefix: "p:"}
	s.run(t, 1, scriptCase{
		before: deadOne, call: whenFull(t, redriving("9-0")), reply: `[1 *]`,
		after: "retry\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2 oid=1-0\ndlq",
	})
	s.run(t, 2, scriptCase{
		before: deadOne, call: whenFull(t, publishingAnew("9-0")), reply: `[1 *]`,
		after: "queue\n  * x=1 body=\"a\\x00\\xff\" h:k=v x=2\ndlq",
	})
}

// A user who lacks a command moves nothing, not even half-way, and is told so once.
func TestScriptRedriveWithoutPermission(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	s := scriptServer{redis: redistest.Dial(t, server.URL()), prefix: "p:"}
	for i, command := range []string{"xdel", "zrem", "xadd", "xrange"} {
		t.Run(command, func(t *testing.T) {
			e, v := s.env(t, i)
			v.do(deadOne+"\nXADD @dlq 10-0 body b\nACL SETUSER without-"+command+" on >pw +@all ~* -"+command, e.now)
			before := v.dump()
			e.redis = redistest.Dial(t, "redis://without-"+command+":pw@"+server.Addr())
			result := redriving("9-0", "10-0")(e)
			// Since 7.2 the script outlives it, and says so of each dead letter.
			if err := result.Error(); !permanent(err) && !strings.Contains(v.reply(result), "ACL failure") {
				t.Errorf("the answer is %v, %s", err, v.reply(result))
			}
			if after := v.dump(); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
		})
	}
}
