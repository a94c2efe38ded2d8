package xstreamq

import (
	"testing"

	"github.com/redis/rueidis"
)

func survey(e scriptEnv) rueidis.RedisResult {
	return runSurvey(e.ctx, e.redis, e.keys, surveyArgs{Group: "g"})
}

func forget(force bool) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runForget(e.ctx, e.redis, e.keys, forgetArgs{Group: "g", Force: force})
	}
}

// A group with one of everything, beside another group of the queue.
const (
	idleGroup   = "XADD @queue 1-0 body a\nXGROUP CREATE @queue g 0\nXGROUP CREATE @queue other 0-0\n"
	onePending  = "XREADGROUP GROUP g c COUNT 1 STREAMS @queue >\n"
	retryGroup  = "XGROUP CREATE @retry g-retry 0 MKSTREAM\n"
	oneRetry    = retryGroup + "XADD @retry 1-0 body r oid 1-0 rc 1\n"
	oneReread   = oneRetry + "XREADGROUP GROUP g-retry c COUNT 1 STREAMS @retry >\n"
	oneBackoff  = `ZADD @backoff 1 "1-0\x004:body1:b"` + "\n"
	oneDead     = "XADD @dlq 1-0 body d\n"
	emptyDLQ    = oneDead + "XDEL @dlq 1-0\n"
	oneDone     = "ZADD @done 1 1-0\n"
	sweepsNow   = "SET @lock 1\n"
	withoutG    = "queue\n  1-0 body=a\n  other at 0-0:"
	wholeGroup  = idleGroup + onePending + oneReread + oneBackoff + emptyDLQ + oneDone
	noLongGroup = "XADD @queue 1-0 body a\nXGROUP CREATE @queue other 0-0\n"
)

var forgetTypes = [][2]string{{"queue", "stream"}, {"retry", "stream"}, {"backoff", "zset"}, {"dlq", "stream"}, {"done", "zset"}}

func TestScriptSurvey(t *testing.T) {
	cases := []scriptCase{
		{name: "nothing there", call: survey, reply: "[0 0 0 0 0]"},
		{name: "another group alone", before: noLongGroup, call: survey, reply: "[0 0 0 0 0]"},
		{name: "a group that has nothing", before: idleGroup, call: survey, reply: "[1 0 0 0 0]"},
		{name: "pending on the queue", before: idleGroup + onePending, call: survey, reply: "[1 1 0 0 0]"},
		{name: "to be retried", before: oneRetry, call: survey, reply: "[1 0 1 0 0]"},
		{name: "pending on the retry stream", before: oneReread, call: survey, reply: "[1 1 0 0 0]"},
		{name: "on a retry stream without a group", before: "XADD @retry 1-0 body r", call: survey, reply: "[1 0 1 0 0]"},
		{name: "in backoff", before: oneBackoff, call: survey, reply: "[1 0 0 1 0]"},
		{name: "dead", before: oneDead, call: survey, reply: "[1 0 0 0 1]"},
		{name: "an empty key", before: emptyDLQ, call: survey, reply: "[1 0 0 0 0]"},
		{name: "markers alone", before: oneDone, call: survey, reply: "[1 0 0 0 0]"},
		{name: "everything", before: wholeGroup + "XADD @dlq 2-0 body d\n", call: survey, reply: "[1 2 0 1 1]"},
	}
	for _, pair := range forgetTypes {
		key, want := pair[0], pair[1]
		cases = append(cases, scriptCase{
			name: key + " of the wrong type", before: "SET @" + key + " x", call: survey,
			reply: "error XQTYPE key @" + key + " holds a string, not a " + want,
		})
	}
	runScriptCases(t, cases)
}

func TestScriptForget(t *testing.T) {
	cases := []scriptCase{
		{name: "nothing there", call: forget(false), reply: "[2 0 0 0 0]"},
		{name: "a group that has nothing", before: idleGroup + retryGroup, call: forget(false), reply: "[2 0 0 0 0]", after: withoutG},
		{name: "what it has not read does not count", before: idleGroup + "XADD @queue 2-0 body b", call: forget(false), reply: "[2 0 0 0 0]",
			after: "queue\n  1-0 body=a\n  2-0 body=b\n  other at 0-0:"},
		{name: "keys without a group", before: retryGroup + emptyDLQ + oneDone + sweepsNow, call: forget(false), reply: "[2 0 0 0 0]", after: "\n"},
		{name: "pending", before: idleGroup + onePending, call: forget(false), reply: "[0 1 0 0 0]"},
		{name: "to be retried", before: idleGroup + oneRetry, call: forget(false), reply: "[0 0 1 0 0]"},
		{name: "pending on the retry stream", before: idleGroup + oneReread, call: forget(false), reply: "[0 1 0 0 0]"},
		{name: "in backoff", before: idleGroup + oneBackoff, call: forget(false), reply: "[0 0 0 1 0]"},
		{name: "dead", before: idleGroup + oneDead, call: forget(false), reply: "[0 0 0 0 1]"},
		{name: "by force, with everything", before: wholeGroup + sweepsNow, call: forget(true), reply: "[2 2 0 1 0]", after: withoutG},
		{name: "dead letters are not lost by force", before: idleGroup + onePending + oneDead, call: forget(true), reply: "[0 1 0 0 1]"},
		{
			name: "many consumers are to be deleted first", call: forget(true), reply: "[3 0 0 0 0]",
			before: "XGROUP CREATE @queue g 0-0 MKSTREAM\n" + times(1001, "XGROUP CREATECONSUMER @queue g c%d"),
		},
		{
			name: "and hold nothing before that", call: forget(true), reply: "[1 1 0 0 0]",
			before: idleGroup + times(1000, "XGROUP CREATECONSUMER @queue g c%d") + onePending,
			after:  "queue\n  1-0 body=a\n  g at 1-0: …\n  other at 0-0:",
		},
		{
			name: "many pending ones are given up in pages", call: forget(true), reply: "[1 1001 0 1 0]",
			before: times(1001, "XADD @queue %d-0 body a") + "XGROUP CREATE @queue g 0\nXREADGROUP GROUP g c STREAMS @queue >\n" + oneBackoff,
			after:  "queue\n" + span(1, 1001, "  %d-0 body=a") + "  g at 1001-0: c\n    1001-0 c x1\nbackoff\n  1 1-0 body=b",
		},
	}
	for _, pair := range forgetTypes {
		key, want := pair[0], pair[1]
		before := "SET @" + key + " x"
		if key != "queue" {
			before = idleGroup + before
		}
		cases = append(cases, scriptCase{
			name: key + " of the wrong type", before: before, call: forget(true),
			reply: "error XQTYPE key @" + key + " holds a string, not a " + want,
		})
	}
	runScriptCases(t, cases)
}
