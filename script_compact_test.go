package xstreamq

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

func ids(first, last uint64) string { return strings.ReplaceAll(span(first, last, " %d-0"), "\n", "") }

func compact(a compactArgs) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult { return runCompact(e.ctx, e.redis, e.keys, a) }
}

// Trimming is by whole nodes of a stream, 100 entries each, so the bounds in these cases are the first ids of nodes: there
// the embedded server, which trims exactly, must come to the same.
func TestScriptCompact(t *testing.T) {
	queue := times(300, "XADD @queue %d-0 body a")
	left := func(first uint64, groups string) string {
		return "queue\n" + span(first, 300, "  %d-0 body=a") + unindent(groups)
	}
	all := compact(compactArgs{Groups: []string{"g"}})
	runScriptCases(t, []scriptCase{
		{
			name: "one group", before: queue + "XGROUP CREATE @queue g 201-0", call: all, reply: `[200 "" 0 0]`,
			after: left(201, "  g at 201-0:"),
		},
		{
			name: "up to the slower of two", before: queue + "XGROUP CREATE @queue g 201-0\nXGROUP CREATE @queue h 101-0", call: all, reply: `[100 "" 0 0]`,
			after: left(101, "  g at 201-0:\n  h at 101-0:"),
		},
		{
			name: "a group that nobody registered counts too", before: queue + "XGROUP CREATE @queue g 201-0\nXGROUP CREATE @queue a 101-0", call: all,
			reply: `[100 "" 0 0]`, after: left(101, "  a at 101-0:\n  g at 201-0:"),
		},
		{
			name: "a new group at the start", before: queue + "XGROUP CREATE @queue g 201-0\nXGROUP CREATE @queue h 0-0", call: all, reply: `[0 "" 0 0]`,
		},
		{
			name:   "up to the oldest pending entry",
			before: queue + "XGROUP CREATE @queue g 100-0\nXREADGROUP GROUP g c STREAMS @queue >\nXACK @queue g" + ids(102, 300), call: all,
			reply: `[100 "" 0 0]`, after: left(101, "  g at 300-0: c\n    101-0 c x1"),
		},
		{
			name: "of whichever group", before: queue + "XGROUP CREATE @queue h 100-0\nXREADGROUP GROUP h c STREAMS @queue >\nXGROUP CREATE @queue g 201-0", call: all,
			reply: `[100 "" 0 0]`, after: left(101, "  g at 201-0:\n  h at 300-0: c\n"+span(101, 300, "    %d-0 c x1")),
		},
		{
			name: "a deleted entry that is still pending", before: queue + `
				XGROUP CREATE @queue g 0-0
				XREADGROUP GROUP g c STREAMS @queue >
				XDEL @queue 1-0
				XACK @queue g` + ids(2, 300),
			call: all, reply: `[0 "" 0 0]`,
			gap: "it does not count a deleted entry as pending",
		},
		{name: "nothing read", before: queue + "XGROUP CREATE @queue g 0", call: all, reply: `[0 "" 0 0]`},
		{name: "nothing read by two groups", before: queue + "XGROUP CREATE @queue g 0\nXGROUP CREATE @queue h 0", call: all, reply: `[0 "" 0 0]`},
		{name: "a registered group is missing", before: queue + "XGROUP CREATE @queue g 201-0",
			call: compact(compactArgs{Groups: []string{"g", "h"}}), reply: `[0 h 0 0]`},
		{name: "no group", before: queue, call: all, reply: `[0 "" 1 0]`},
		{name: "no group, none registered", before: queue, call: compact(compactArgs{}), reply: `[0 "" 1 0]`},
		{name: "no stream", call: all, reply: `[0 "" 0 0]`},
		{name: "queue of the wrong type", before: "SET @queue x", call: all, reply: "error XQTYPE key @queue holds a string, not a stream"},
	})
}

// Ids have two parts of up to 20 digits: more than a Lua number holds, and of different length.
func TestScriptCompactLongIDs(t *testing.T) {
	all := compact(compactArgs{})
	numbers := func(name, id string, first uint64) []scriptCase {
		before := span(first, first+299, "XADD @queue "+id+" body a")
		second := strings.TrimSpace(span(first+100, first+100, id))
		third := strings.TrimSpace(span(first+200, first+200, id))
		left := "queue\n" + span(first+100, first+299, "  "+id+" body=a")
		return []scriptCase{
			{
				name: name + ", the later group last", before: before + "XGROUP CREATE @queue g " + second + "\nXGROUP CREATE @queue h " + third,
				call: all, reply: `[100 "" 0 0]`, after: left + "  g at " + second + ":\n  h at " + third + ":",
			},
			{
				name: name + ", the later group first", before: before + "XGROUP CREATE @queue g " + third + "\nXGROUP CREATE @queue h " + second,
				call: all, reply: `[100 "" 0 0]`, after: left + "  g at " + third + ":\n  h at " + second + ":",
			},
			{
				name: name + ", pending", before: before + "XGROUP CREATE @queue g " + strings.TrimSpace(span(first+99, first+99, id)) +
					"\nXREADGROUP GROUP g c STREAMS @queue >",
				call: all, reply: `[100 "" 0 0]`, after: left + "  g at " + strings.TrimSpace(span(first+299, first+299, id)) + ": c\n" +
					span(first+100, first+299, "    "+id+" c x1"),
			},
		}
	}
	var cases []scriptCase
	cases = append(cases, numbers("one more digit", "%d-0", 800)...)
	cases = append(cases, numbers("20 digits", "%d-0", 9999999999999999800)...)
	cases = append(cases, numbers("the largest", "%d-0", math.MaxUint64-299)...)
	cases = append(cases, numbers("second part, one more digit", "7-%d", 800)...)
	cases = append(cases, numbers("second part, 20 digits", "7-%d", 9999999999999999800)...)
	runScriptCases(t, cases)
}

func TestScriptCompactRetain(t *testing.T) {
	var queue strings.Builder
	for _, age := range []string{"3000", "1000"} {
		for ms := 999; ms >= 900; ms-- {
			fmt.Fprintf(&queue, "XADD @queue $now-%s%d body a\n", age, ms)
		}
	}
	before := queue.String() + "XGROUP CREATE @queue g $now-1000999-0"
	left := "queue\n" + times(100, "  * body=a") + "  g at *:"
	keep := func(ms int64) scriptCall { return compact(compactArgs{Retain: ms}) }
	runScriptCases(t, []scriptCase{
		{name: "older ones go", before: before, call: keep(2_000_000), reply: `[100 "" 0 0]`, after: left},
		{name: "younger ones stay", before: before, call: keep(5_000_000), reply: `[0 "" 0 0]`},
		{name: "an unfinished one goes at no age", before: queue.String() + "XGROUP CREATE @queue g 5-0", call: keep(1), reply: `[0 "" 0 0]`},
		{name: "longer than there has been time", before: before, call: keep(math.MaxInt64 / 1_000_000), reply: `[0 "" 0 0]`},
	})
}
