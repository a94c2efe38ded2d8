package xstreamq

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

func depthOf(group string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runDepth(e.ctx, e.redis, e.keys, depthArgs{Group: group, RetryGroup: group + "-retry"})
	}
}

func depthSeen(a depthofArgs) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		a.Group, a.RetryGroup = "g", "g-retry"
		return runDepthof(e.ctx, e.redis, e.keys, a)
	}
}

// The embedded server says no lag: in these cases … stands for it.
func TestScriptDepth(t *testing.T) {
	five := times(5, "XADD @queue %d-0 body a")
	taken := five + "XGROUP CREATE @queue g 0\nXREADGROUP GROUP g c~1 COUNT 2 STREAMS @queue >\n"
	runScriptCases(t, []scriptCase{
		{name: "nothing there", call: depthOf("g"), reply: `[now 0 0 0 -1 0-0 "" "" "" "" 0 0 "" 0 0 0]`},
		{
			name: "no such group", before: five + "XGROUP CREATE @queue h 3-0", call: depthOf("g"),
			reply: `[now 0 5 0 -1 0-0 1-0 1-0 "" "" 0 0 "" 0 0 0]`,
		},
		{
			name: "nothing delivered", before: five + "XGROUP CREATE @queue g 0", call: depthOf("g"),
			reply: `[now 1 5 0 … … 1-0 1-0 "" "" 0 0 "" 0 0 0]`,
		},
		{
			name: "some delivered, some held", before: taken + "XACK @queue g 1-0", call: depthOf("g"),
			reply: `[now 1 5 1 … 2-0 1-0 3-0 5-0 2-0 0 0 "" 0 0 0]`,
		},
		{
			name: "all delivered", before: taken + "XREADGROUP GROUP g c~1 STREAMS @queue >", call: depthOf("g"),
			reply: `[now 1 5 5 … 5-0 "" "" "" 1-0 0 0 "" 0 0 0]`,
		},
		{
			name: "what was delivered is trimmed", before: taken + "XACK @queue g 1-0 2-0\nXTRIM @queue MINID 3-0", call: depthOf("g"),
			reply: `[now 1 3 0 … 2-0 3-0 3-0 "" "" 0 0 "" 0 0 0]`,
		},
		{
			name: "only the last delivered one is deleted", before: taken + "XDEL @queue 2-0\nXACK @queue g 1-0 2-0", call: depthOf("g"),
			reply: `[now 1 4 0 … 2-0 1-0 3-0 5-0 "" 0 0 "" 0 0 0]`,
		},
		{
			name: "a place after the last id that can be", before: "XADD @queue 18446744073709551615-18446744073709551615 body a" +
				"\nXGROUP CREATE @queue g 18446744073709551615-18446744073709551615",
			call: depthOf("g"), reply: `[now 1 1 0 … 18446744073709551615-18446744073709551615 "" "" "" "" 0 0 "" 0 0 0]`,
		},
		{
			name: "a message in every place", before: taken + `
				XACK @queue g 1-0
				XADD @retry 7-0 body r oid 4-0 rc 1
				XADD @retry 8-0 body r oid 5-0 rc 1
				XGROUP CREATE @retry g-retry 0
				XREADGROUP GROUP g-retry c~1 COUNT 1 STREAMS @retry >
				ZADD @backoff 9 "6-0\x004:body1:b"
				ZADD @delayed 9 "d9-aa\x004:body1:b" 9 "d9-bb\x004:body1:b" 9 "d9-cc\x004:body1:b"
				XADD @dlq 9-0 body d
				XADD @dlq 10-0 body d`,
			call: depthOf("g"), reply: `[now 1 5 1 … 2-0 1-0 3-0 5-0 2-0 2 1 4-0 3 1 2]`,
		},
		{
			name: "only the retry stream, without its group", before: "XADD @retry 7-0 body r", call: depthOf("g"),
			reply: `[now 0 0 0 -1 0-0 "" "" "" "" 1 0 7-0 0 0 0]`,
		},
		{
			name: "a delayed message to retry keeps its id", before: "XADD @retry 7-0 body r oid d5-ff pub 3", call: depthOf("g"),
			reply: `[now 0 0 0 -1 0-0 "" "" "" "" 1 0 d5-ff 0 0 0]`,
		},
		{name: "no group is meant", before: taken + "ZADD @delayed 9 x", call: depthOf(""), reply: `[now 0 5 0 -1 0-0 1-0 1-0 "" "" 0 0 "" 1 0 0]`},
	})
}

// The first key of a wrong type is named, whatever it is.
func TestScriptDepthWrongType(t *testing.T) {
	var cases []scriptCase
	for role, want := range map[string]string{"queue": "stream", "delayed": "zset", "retry": "stream", "backoff": "zset", "dlq": "stream"} {
		cases = append(cases, scriptCase{
			name: role, before: "SET @" + role + " x", call: depthOf("g"),
			reply: "error XQTYPE key @" + role + " holds a string, not a " + want,
		})
	}
	runScriptCases(t, cases)
}

func count(from, to string, most int64) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runCount(e.ctx, e.redis, e.keys, countArgs{From: from, To: to, Most: most})
	}
}

func TestScriptCount(t *testing.T) {
	queue := times(300, "XADD @queue %d-0 body a")
	large := times(5, "XADD @queue %d-0 body "+strings.Repeat("x", 600<<10))
	runScriptCases(t, []scriptCase{
		{name: "all", before: queue, call: count("1-0", "300-0", 1000), reply: `[1 299 ""]`},
		{name: "a part", before: queue, call: count("7-0", "9-0", 1000), reply: `[1 2 ""]`},
		{name: "none", before: queue, call: count("7-0", "7-0", 1000), reply: `[1 0 ""]`},
		{name: "up to an id that is not there", before: queue + "XDEL @queue 9-0 8-0", call: count("7-0", "9-0", 1000), reply: `[1 0 ""]`},
		{name: "as many as may be", before: queue, call: count("1-0", "300-0", 299), reply: `[1 299 ""]`},
		{name: "fewer than there are", before: queue, call: count("1-0", "300-0", 298), reply: `[1 298 299-0]`},
		{name: "one", before: queue, call: count("1-0", "300-0", 1), reply: `[1 1 2-0]`},
		{name: "the first is gone", before: queue + "XDEL @queue 7-0", call: count("7-0", "9-0", 1000), reply: `[0 0 ""]`},
		{name: "all is gone", call: count("7-0", "9-0", 1000), reply: `[0 0 ""]`},
		{name: "no more than 1 MiB is looked at, but for the entry that passes it", before: large, call: count("1-0", "5-0", 1000), reply: `[1 1 2-0]`},
		{name: "wrong type", before: "SET @queue x", call: count("7-0", "9-0", 1000), reply: "error XQTYPE key @queue holds a string, not a stream"},
	})
}

// What was seen of the group before stands, also where it has moved on; of what it had pending and has not, there is no id.
func TestScriptDepthof(t *testing.T) {
	five := times(5, "XADD @queue %d-0 body a") + "XGROUP CREATE @queue g 0\nXGROUP CREATE @queue h 0\n"
	const retried = "XADD @retry 7-0 body r oid 4-0 rc 1\nXGROUP CREATE @retry g-retry 0\nZADD @backoff 9 \"6-0\x004:body1:b\"\nXADD @dlq 9-0 body d\n"
	runScriptCases(t, []scriptCase{
		{
			name: "as it is", before: five + "XREADGROUP GROUP g c~1 COUNT 2 STREAMS @queue >\nXACK @queue g 1-0",
			call:  depthSeen(depthofArgs{Delivered: "2-0", Pending: 1, Lag: 3}),
			reply: `[now 1 5 1 3 2-0 1-0 3-0 5-0 2-0 0 0 "" 0 0 0]`,
		},
		{
			name: "moved on", before: five + "XREADGROUP GROUP g c~1 COUNT 5 STREAMS @queue >\nXACK @queue g 1-0 2-0 3-0 4-0 5-0\n" + retried,
			call:  depthSeen(depthofArgs{Delivered: "2-0", Pending: 2, Lag: -1}),
			reply: `[now 1 5 2 -1 2-0 1-0 3-0 5-0 "" 1 0 4-0 0 1 1]`,
		},
		{
			name: "a wrong type", before: five + "SET @dlq text", call: depthSeen(depthofArgs{Delivered: "2-0"}),
			reply: "error XQTYPE key @dlq holds a string, not a stream",
		},
	})
}
