package xstreamq

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// finding calls the find script from the start of both places.
func finding(ids ...string) scriptCall {
	return findingFrom(findArgs{From: "0-0", Due: "-inf", IDs: ids})
}

func findingFrom(a findArgs) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult { return runFind(e.ctx, e.redis, e.keys, a) }
}

// onTheWay are messages of a group in all states before their end: unread and pending on the retry stream, and in backoff.
const onTheWay = `
	XADD @retry 5-0 body a oid 1-0
	XADD @retry 6-0 body b oid d2-ff pub 2
	XADD @retry 7-0 body c
	XGROUP CREATE @retry g-retry 0
	XREADGROUP GROUP g-retry c COUNT 1 STREAMS @retry >
	ZADD @backoff 100 "3-0\x004:body1:d"
	ZADD @backoff 100 "4-0\x004:body1:e"
	ZADD @backoff 200 "1-1\x00"
	XADD @queue 8-0 body f
	XADD @dlq 9-0 body g oid 10-0`

func TestScriptFind(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{name: "nothing anywhere", call: finding("1-0"), reply: `[now "" 1 "" 0]`},
		{name: "each where it is", before: onTheWay, call: finding("1-0", "d2-ff", "7-0", "4-0", "1-1"),
			reply: `[now 7-0 1 "" 0 1-0 5-0 d2-ff 6-0 7-0 7-0 4-0 "" 1-1 ""]`},
		{name: "who is elsewhere is not found", before: onTheWay, call: finding("8-0", "10-0", "9-0", "5-0", "0-0"), reply: `[now 7-0 1 "" 0]`},
		{name: "some of them", before: onTheWay, call: finding("11-0", "3-0", "d2-ff"), reply: `[now 7-0 1 "" 0 d2-ff 6-0 3-0 ""]`},
		{name: "asked twice", before: onTheWay, call: finding("1-0", "1-0", "11-0"), reply: `[now 7-0 1 "" 0 1-0 5-0]`},
		{name: "nobody looks on when all are found", before: onTheWay, call: finding("1-0"), reply: `[now 7-0 1 -inf 0 1-0 5-0]`},
		{name: "nothing asked", before: onTheWay, call: finding(), reply: `[now "" 0 -inf 0]`},
		{name: "from an id on", before: onTheWay, call: findingFrom(findArgs{From: "6-0", Due: "-inf", IDs: []string{"1-0", "d2-ff"}}),
			reply: `[now 7-0 1 "" 0 d2-ff 6-0]`},
		{name: "from behind the last one", before: onTheWay, call: findingFrom(findArgs{From: "7-1", Due: "-inf", IDs: []string{"1-0", "3-0"}}),
			reply: `[now "" 1 "" 0 3-0 ""]`},
		{name: "the backoff set alone", before: onTheWay, call: findingFrom(findArgs{Due: "-inf", IDs: []string{"1-0", "3-0"}}),
			reply: `[now "" 1 "" 0 3-0 ""]`},
		{name: "behind the first of a score", before: onTheWay, call: findingFrom(findArgs{Due: "100", Skip: 1, IDs: []string{"3-0", "4-0", "1-1"}}),
			reply: `[now "" 1 "" 0 4-0 "" 1-1 ""]`},
		{name: "behind all of a score", before: onTheWay, call: findingFrom(findArgs{Due: "100", Skip: 2, IDs: []string{"3-0", "4-0", "1-1", "0-0"}}),
			reply: `[now "" 1 "" 0 1-1 ""]`},
		{name: "members that are none", before: "ZADD @backoff 1 x\nZADD @backoff 2 \"3-0\\x00\"\nZADD @backoff -inf \"\"\nZADD @backoff +inf \"5-0\\x00\"",
			call: finding("x", "3-0", "5-0", "6-0"), reply: `[now "" 1 "" 0 3-0 "" 5-0 ""]`},
		{name: "the last of two ids counts, as for the engine", before: "XADD @retry 5-0 oid 1-0 oid 2-0", call: finding("1-0", "2-0"),
			reply: `[now 5-0 1 "" 0 2-0 5-0]`},
		{name: "retry stream of the wrong type", before: "SET @retry x", call: finding("1-0"), reply: "error XQTYPE key @retry holds a string, not a stream"},
		{name: "backoff of the wrong type", before: "SET @backoff x", call: finding("1-0"), reply: "error XQTYPE key @backoff holds a string, not a zset"},
	})
}

// findPages looks for one message to the end of both places, as the canary does, and returns how many calls it took.
func findPages(t *testing.T, e scriptEnv, id string) (calls int, found string) {
	t.Helper()
	w := &canary{client: &Client{redis: e.redis}, keys: e.keys}
	at := findArgs{From: "0-0", Due: "-inf", IDs: []string{id}}
	for calls < 1000 {
		f, err := w.find(e.ctx, at)
		if err != nil {
			t.Fatal(err)
		}
		calls++
		entry, ok := f.at[id]
		switch {
		case ok && entry == "":
			return calls, "backoff"
		case ok:
			return calls, entry
		case !f.ended:
			at.From = f.next.String()
		case f.due == "":
			return calls, ""
		default:
			at.From, at.Due, at.Skip = "", f.due, f.skip
		}
	}
	t.Fatal("the search does not come to an end")
	return 0, ""
}

// A search goes on where a page ended: after 500 of each place, or 512 KiB.
func TestScriptFindPages(t *testing.T) {
	t.Parallel()
	retry := times(1200, "XADD @retry %d-0 body a oid 1-%d")
	large := strings.Repeat("x", 200<<10)
	cases := []struct {
		name, before, id string
		calls            int
		found            string
	}{
		{"first of the retry stream", retry, "1-1", 1, "1-0"},
		{"last of the retry stream", retry, "1-1200", 3, "1200-0"},
		{"none of the retry stream", retry, "1-1201", 3, ""},
		{"last that waits", times(1200, "ZADD @backoff %d \"1-%d\\x00\""), "1-1200", 3, "backoff"},
		{"none that waits", times(1200, "ZADD @backoff %d \"1-%d\\x00\""), "1-1201", 3, ""},
		{"all due at one time", times(1200, "ZADD @backoff 7 \"1-%d\\x00\""), "1-999", 3, "backoff"},
		{"many due at one time, then others", times(700, "ZADD @backoff 7 \"1-%d\\x00\"") + span(701, 900, "ZADD @backoff %d \"1-%d\\x00\""), "1-900", 2, "backoff"},
		{"both", retry + times(1200, "ZADD @backoff %d \"2-%d\\x00\""), "2-1200", 5, "backoff"},
		{"large on the retry stream", times(7, "XADD @retry %d-0 oid 1-%d body "+large), "1-7", 2, "7-0"},
		{"large in backoff", times(7, "ZADD @backoff %d \"1-%d\\x00"+large+"\""), "1-7", 2, "backoff"},
	}
	for _, s := range scriptServers(t) {
		for i, c := range cases {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				e, v := s.env(t, i)
				v.do(c.before, e.now)
				calls, found := findPages(t, e, c.id)
				if got, want := fmt.Sprint(calls, " ", found), fmt.Sprint(c.calls, " ", c.found); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
	}
}
