package xstreamq

import (
	"testing"

	"github.com/redis/rueidis"
)

func create(group, from string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runCreate(e.ctx, e.redis, e.keys, createArgs{Group: group, From: from})
	}
}

func TestScriptCreate(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{name: "on a new stream", call: create("g", "0-0"), reply: "1", after: "queue\n  g at 0-0:"},
		{
			name: "beside another group", before: held, call: create("h", "0-0"), reply: "1",
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				    1-0 c x1
				  h at 0-0:`,
		},
		{name: "at the end", before: "XADD @queue 1-0 body a", call: create("g", "$"), reply: "1", after: "queue\n  1-0 body=a\n  g at 1-0:"},
		{name: "one that exists stays as it is", before: held, call: create("g", "0-0"), reply: "0"},
		{
			name: "on the retry stream", before: held,
			call: func(e scriptEnv) rueidis.RedisResult { return create("g-retry", "0-0")(e.onRetry()) }, reply: "1",
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c
				    1-0 c x1
				retry
				  g-retry at 0-0:`,
		},
		{name: "no id", before: held, call: create("h", "x"), reply: "error …", gap: "it takes anything for an id"},
		{name: "stream of the wrong type", before: "SET @queue x", call: create("g", "0-0"),
			reply: "error XQTYPE key @queue holds a string, not a stream"},
	})
}

func register(memberName, about string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runRegister(e.ctx, e.redis, e.keys, registerArgs{Member: memberName, About: about})
	}
}

func TestScriptRegister(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{
			name: "the first time", call: register("q/g", `{"queue":"q","group":"g"`), reply: "1",
			after: `
				registry
				  q/g {"queue":"q","group":"g","first_seen":now,"last_seen":now}`,
		},
		{
			name: "again, with other settings", before: `HSET @registry q/g "{\"queue\":\"q\",\"first_seen\":5,\"last_seen\":6}" q/h x`,
			call: register("q/g", `{"queue":"q","max":3`), reply: "1",
			after: `
				registry
				  q/g {"queue":"q","max":3,"first_seen":5,"last_seen":now}
				  q/h x`,
		},
		{
			name: "over something unreadable", before: "HSET @registry q/g x", call: register("q/g", `{"queue":"q"`), reply: "1",
			after: `
				registry
				  q/g {"queue":"q","first_seen":now,"last_seen":now}`,
		},
		{name: "registry of the wrong type", before: "SET @registry x", call: register("q/g", `{"queue":"q"`), reply: "error WRONGTYPE…"},
	})
}

func reap(names ...string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runReap(e.ctx, e.redis, e.keys, reapArgs{Group: "g", Names: names})
	}
}

func TestScriptReap(t *testing.T) {
	const consumers = `
		XADD @queue 1-0 body a
		XGROUP CREATE @queue g 0
		XGROUP CREATE @queue h 0-0
		XREADGROUP GROUP g busy STREAMS @queue >
		XGROUP CREATECONSUMER @queue g empty
		XGROUP CREATECONSUMER @queue g other
		XGROUP CREATECONSUMER @queue h empty`
	after := func(left string) string {
		return `
			queue
			  1-0 body=a
			  g at 1-0:` + left + `
			    1-0 busy x1
			  h at 0-0: empty`
	}
	runScriptCases(t, []scriptCase{
		{name: "those that hold nothing", before: consumers, call: reap("empty", "other"), reply: "2", after: after(" busy")},
		{name: "one of them", before: consumers, call: reap("empty"), reply: "1", after: after(" busy other")},
		{name: "never one that holds something", before: consumers, call: reap("busy"), reply: "0"},
		{name: "beside one that holds something", before: consumers, call: reap("empty", "busy", "other"), reply: "2", after: after(" busy")},
		{name: "one that holds an entry that is gone", before: consumers + "\nXDEL @queue 1-0", call: reap("busy"), reply: "0"},
		{name: "unknown name", before: consumers, call: reap("nobody"), reply: "1"},
		{name: "no names", before: consumers, call: reap(), reply: "0"},
		{name: "no such group", before: "XADD @queue 1-0 body a", call: reap("empty"), reply: "error NOGROUP…"},
		{name: "no such stream", call: reap("empty"), reply: "error NOGROUP…"},
		{name: "queue of the wrong type", before: "SET @queue x", call: reap("empty"), reply: "error WRONGTYPE…"},
	})
}
