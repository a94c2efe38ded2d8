package xstreamq

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// idling are three messages of c, the first two at the end of their lease, and one of d.
const idling = `
	XADD @queue 1-0 body a
	XADD @queue 2-0 body b
	XADD @queue 3-0 body c
	XGROUP CREATE @queue g 0
	XREADGROUP GROUP g c STREAMS @queue >
	XCLAIM @queue g c 0 1-0 2-0 IDLE 30000 RETRYCOUNT 3 JUSTID
	XCLAIM @queue g d 0 3-0 IDLE 30000 RETRYCOUNT 1 JUSTID`

func extend(mode string, ids ...string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		return runExtend(e.ctx, e.redis, e.keys, extendArgs{Group: "g", Consumer: "c", Mode: mode, IDs: ids})
	}
}

func TestScriptExtend(t *testing.T) {
	state := func(rows string) string {
		return "queue\n  1-0 body=a\n  2-0 body=b\n  3-0 body=c\n  g at 3-0: c d\n" + rows
	}
	runScriptCases(t, []scriptCase{
		{
			name: "renew leaves the count alone", before: idling,
			call: extend(modeRenew, "1-0"), reply: `[1]`,
			after: state(`    1-0 c x3
				    2-0 c x3 idle 30s
				    3-0 d x1 idle 30s`),
			gap: "it counts a claim with JUSTID as a delivery",
		},
		{
			name: "started counts one delivery", before: idling,
			call: extend(modeStarted, "1-0", "2-0"), reply: `[1 1]`,
			after: state(`    1-0 c x1
				    2-0 c x1
				    3-0 d x1 idle 30s`),
		},
		{
			name: "unstarted marks a release", before: idling,
			call: extend(modeUnstarted, "2-0", "1-0"), reply: `[1 1]`,
			after: state(`    1-0 c x0
				    2-0 c x0
				    3-0 d x1 idle 30s`),
		},
		{name: "check changes nothing", before: idling, call: extend(modeCheck, "1-0", "3-0", "9-0"), reply: `[1 0 0]`},
		{
			name: "never takes another's", before: idling,
			call: extend(modeStarted, "3-0", "1-0", "7-0"), reply: `[0 1 0]`,
			after: state(`    1-0 c x1
				    2-0 c x3 idle 30s
				    3-0 d x1 idle 30s`),
		},
		{name: "acknowledged is lost, not taken back", before: idling + "\nXACK @queue g 1-0", call: extend(modeRenew, "1-0"), reply: `[0]`},
		{name: "never read", before: "XADD @queue 1-0 body a\nXGROUP CREATE @queue g 0", call: extend(modeRenew, "1-0"), reply: `[0]`},
		{name: "a deleted entry keeps its pending row", before: idling + "\nXDEL @queue 1-0", call: extend(modeRenew, "1-0"), reply: `[2]`},
		{name: "check does not ask for the entry", before: idling + "\nXDEL @queue 1-0", call: extend(modeCheck, "1-0"), reply: `[1]`},
		{name: "no such group", before: "XADD @queue 1-0 body a", call: extend(modeRenew, "1-0"), reply: "error NOGROUP…"},
		{name: "no such stream", call: extend(modeRenew, "1-0"), reply: "error NOGROUP…"},
		{name: "queue of the wrong type", before: "SET @queue x", call: extend(modeRenew, "1-0"), reply: "error WRONGTYPE…"},
	})
}

// A call looks at 1 MiB of entries and says how far it came.
func TestScriptExtendBounded(t *testing.T) {
	body := strings.Repeat("x", 600<<10)
	before := times(3, "XADD @queue %d-0 body "+body) + `
		XGROUP CREATE @queue g 0
		XREADGROUP GROUP g c STREAMS @queue >
		XCLAIM @queue g c 0 1-0 2-0 3-0 IDLE 30000 RETRYCOUNT 1 JUSTID`
	runScriptCases(t, []scriptCase{{
		name: "bytes", before: before, call: extend(modeStarted, "1-0", "2-0", "3-0"), reply: `[1 1]`,
		after: "queue\n" + times(3, "  %d-0 body="+show(body)) + `  g at 3-0: c
			    1-0 c x1
			    2-0 c x1
			    3-0 c x1 idle 30s`,
	}})
}
