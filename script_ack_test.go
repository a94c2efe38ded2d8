package xstreamq

import (
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

func ack(a ackArgs) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		if a.Ours {
			e = e.onRetry()
		}
		return runAck(e.ctx, e.redis, e.keys, a)
	}
}

func TestScriptAck(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{
			name: "on the queue the entries stay", before: heldMany,
			call: ack(ackArgs{Group: "g", IDs: []string{"1-0", "1-0", "3-0", "3-0"}}), reply: "2",
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  3-0 body=c
				  g at 3-0: c
				    2-0 c x1`,
		},
		{
			name: "on the retry stream they go", before: heldAgain + "\nXADD @retry 6-0 body b",
			call: ack(ackArgs{Group: "g-retry", Ours: true, IDs: []string{"5-0", "1-0"}}), reply: "1",
			after: `
				retry
				  6-0 body=b
				  g-retry at 5-0: c`,
		},
		{
			name: "a success ends the message whoever holds it", before: held + "\nXCLAIM @queue g d 0 1-0 RETRYCOUNT 1",
			call: ack(ackArgs{Group: "g", IDs: []string{"1-0", "1-0"}}), reply: "1",
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c d`,
		},
		{name: "too late", before: held + "\nXACK @queue g 1-0", call: ack(ackArgs{Group: "g", IDs: []string{"1-0", "1-0"}}), reply: "0"},
		{name: "no such group", before: held, call: ack(ackArgs{Group: "h", IDs: []string{"1-0", "1-0"}}), reply: "0"},
		{name: "no such stream", call: ack(ackArgs{Group: "g", IDs: []string{"1-0", "1-0"}}), reply: "0"},
		{name: "queue of the wrong type", before: "SET @queue x", call: ack(ackArgs{Group: "g", IDs: []string{"1-0", "1-0"}}), reply: "error WRONGTYPE…"},
	})
}

func TestScriptAckMarks(t *testing.T) {
	const keep = 600_000
	runScriptCases(t, []scriptCase{
		{
			name: "original ids are kept", before: heldAgain,
			call: ack(ackArgs{Group: "g-retry", Ours: true, Keep: keep, IDs: []string{"5-0", "1-0"}}), reply: "1",
			after: `
				retry
				  g-retry at 5-0: c
				done
				  now+600s 1-0`,
		},
		{
			name: "also of a late success, for longer than before", before: held + "\nXACK @queue g 1-0\nZADD @done $now+10000 1-0 $now+20000 7-0",
			call: ack(ackArgs{Group: "g", Keep: keep, IDs: []string{"1-0", "1-0", "2-0", "d5-ff"}}), reply: "0",
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				done
				  now+20s 7-0
				  now+600s 1-0
				  now+600s d5-ff`,
		},
		{
			name: "twice as many expired ones go, the oldest first", before: held + "\nZADD @done 1 z 2 y 3 x $now+60000 w",
			call: ack(ackArgs{Group: "g", Keep: keep, IDs: []string{"1-0", "1-0"}}), reply: "1",
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				done
				  3 x
				  now+60s w
				  now+600s 1-0`,
		},
		{name: "markers of the wrong type", before: held + "\nSET @done x",
			call:  ack(ackArgs{Group: "g", Keep: keep, IDs: []string{"1-0", "1-0"}}),
			reply: "error XQTYPE key @done holds a string, not a zset"},
		{
			name: "without Dedupe nobody looks at the markers", before: held + "\nSET @done x",
			call: ack(ackArgs{Group: "g", IDs: []string{"1-0", "1-0"}}), reply: "1",
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				done x`,
		},
	})
}

// As many ids as a batch has, and more, pass in one call.
func TestScriptAckMany(t *testing.T) {
	const n = 3000
	var ids []string
	for i := 1; i <= n; i++ {
		id := strconv.Itoa(i) + "-0"
		ids = append(ids, id, id)
	}
	before := strings.TrimSpace(times(n, "XADD @queue %d-0 body a")) + "\nXGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >"
	after := "queue\n" + times(n, "  %d-0 body=a") + "  g at 3000-0: c"
	runScriptCases(t, []scriptCase{{name: "batch", before: before, call: ack(ackArgs{Group: "g", IDs: ids}), reply: "3000", after: after}})
}
