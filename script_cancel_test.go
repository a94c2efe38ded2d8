package xstreamq

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

func cancel(id string) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult { return runCancel(e.ctx, e.redis, e.keys, cancelArgs{ID: id}) }
}

func TestScriptCancel(t *testing.T) {
	one := func(due, nonce string) string {
		return "ZADD @delayed " + due + " " + member("d"+due+"-"+nonce, "body", nonce) + "\n"
	}
	show := func(dues ...string) string {
		out := "delayed\n"
		for _, d := range dues {
			due, nonce, _ := strings.Cut(d, "-")
			out += "  " + due + " d" + d + " body=" + nonce + "\n"
		}
		return out
	}
	three := one("5", "aa") + one("5", "bb") + one("5", "cc")
	around := one("4", "aa") + three + one("6", "aa")
	runScriptCases(t, []scriptCase{
		{name: "nothing there", call: cancel("d5-aa"), reply: "0"},
		{name: "the only one", before: one("5", "aa"), call: cancel("d5-aa"), reply: "1", after: "\n"},
		{name: "the first of its time", before: around, call: cancel("d5-aa"), reply: "1", after: show("4-aa", "5-bb", "5-cc", "6-aa")},
		{name: "the middle one", before: around, call: cancel("d5-bb"), reply: "1", after: show("4-aa", "5-aa", "5-cc", "6-aa")},
		{name: "the last of its time", before: around, call: cancel("d5-cc"), reply: "1", after: show("4-aa", "5-aa", "5-bb", "6-aa")},
		{name: "one that is not there, before all", before: around, call: cancel("d5-a"), reply: "0"},
		{name: "between two", before: around, call: cancel("d5-ab"), reply: "0"},
		{name: "after all", before: around, call: cancel("d5-cd"), reply: "0"},
		{name: "the beginning of another's id", before: one("5", "aa"), call: cancel("d5-a"), reply: "0"},
		{name: "more than another's id", before: one("5", "aa"), call: cancel("d5-aaa"), reply: "0"},
		{name: "one whose id begins another's", before: one("5", "a") + one("5", "aa"), call: cancel("d5-a"), reply: "1", after: show("5-aa")},
		{name: "of another time", before: around, call: cancel("d7-aa"), reply: "0"},
		{name: "stored at another time than it says", before: "ZADD @delayed 9 " + member("d5-aa", "body", "aa"), call: cancel("d5-aa"), reply: "0"},
		{
			name: "strangers of the same time", call: cancel("d5-bb"), reply: "1",
			before: `ZADD @delayed 5 "" 5 a 5 d5-bb 5 "d5-bb\x01" 5 zz 5 "\xff\xfe"` + "\n" + three,
			after: `
				delayed
				  5 ""
				  5 a
				  5 d5-aa body=aa
				  5 d5-bb
				  5 "d5-bb\x01"
				  5 d5-cc body=cc
				  5 zz
				  5 "\xff\xfe"`,
		},
		{name: "the year 9999", before: one("253402300799999", "aa") + three, call: cancel("d253402300799999-aa"), reply: "1", after: show("5-aa", "5-bb", "5-cc")},
		{name: "a time beyond all numbers", before: three, call: cancel("d" + strings.Repeat("9", 60) + "-aa"), reply: "0"},
		{name: "of the wrong type", before: "SET @delayed x", call: cancel("d5-aa"), reply: "error XQTYPE key @delayed holds a string, not a zset"},
	})
}

// Every one of a hundred that are due at once is found, and only that one goes.
func TestScriptCancelFindsEach(t *testing.T) {
	t.Parallel()
	for _, server := range scriptServers(t) {
		t.Run(server.name, func(t *testing.T) {
			e, v := server.env(t, 0)
			v.do(times(100, `ZADD @delayed 7 "d7-%d\x004:body1:a"`), 0)
			for i := range uint64(100) {
				id := strings.TrimSpace(span(100-i, 100-i, "d7-%d"))
				for _, want := range []string{"1", "0"} {
					if got := v.reply(cancel(id)(e)); got != want {
						t.Errorf("%s: %s, want %s", id, got, want)
					}
				}
				m := v.ask("ZCARD", e.keys.Delayed)
				if n, _ := m.AsInt64(); n != int64(99-i) {
					t.Fatalf("%d are left after %s", n, id)
				}
			}
		})
	}
}
