package xstreamq

import (
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func publish(items ...string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runPublish(e.ctx, e.redis, e.keys, publishArgs{Items: items})
	}
}

func TestScriptPublish(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{
			name: "in a while", call: publish("in", "60000", "ff", wire.Pack([]string{"body", "a", "h:k", "v"})),
			reply: `[d(now+60s)-ff]`,
			after: `
				delayed
				  now+60s d(now+60s)-ff body=a h:k=v oid=d(now+60s)-ff pub=now`,
		},
		{
			name: "at a time",
			call: func(e scriptEnv) rueidis.RedisResult {
				at := strconv.FormatInt(e.now+60000, 10)
				return publish("at", at, "0a", wire.Pack([]string{"body", "a"}))(e)
			},
			reply: `[d(now+60s)-0a]`,
			after: `
				delayed
				  now+60s d(now+60s)-0a body=a oid=d(now+60s)-0a pub=now`,
		},
		{
			name: "several, the past and the year 9999 among them", before: "ZADD @delayed 3 x",
			call:  publish("at", "0", "01", "4:body1:a", "at", "253402300799999", "02", "4:body1:b", "in", "0", "03", "4:body1:c"),
			reply: `[d0-01 d253402300799999-02 d(now)-03]`,
			after: `
				delayed
				  0 d0-01 body=a oid=d0-01 pub=now
				  3 x
				  now d(now)-03 body=c oid=d(now)-03 pub=now
				  253402300799999 d253402300799999-02 body=b oid=d253402300799999-02 pub=now`,
		},
		{
			name: "the same moment", call: publish("at", "7", "01", "4:body1:a", "at", "7", "02", "4:body1:a"),
			reply: `[d7-01 d7-02]`,
			after: `
				delayed
				  7 d7-01 body=a oid=d7-01 pub=now
				  7 d7-02 body=a oid=d7-02 pub=now`,
		},
		{
			name: "bytes", call: publish("at", "7", "01", wire.Pack([]string{"body", "\x00\xff\r\n", "h:\x00", ""})),
			reply: `[d7-01]`,
			after: `
				delayed
				  7 d7-01 body="\x00\xff\r\n" "h:\x00"="" oid=d7-01 pub=now`,
		},
		{name: "one bad time stores none", call: publish("at", "7", "01", "4:body1:a", "at", "soon", "02", "4:body1:b"), reply: "error …"},
		{name: "a key of the wrong type", before: "SET @delayed x", call: publish("at", "7", "01", "4:body1:a"),
			reply: "error XQTYPE key @delayed holds a string, not a zset"},
	})
}
