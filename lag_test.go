package xstreamq_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// What the server says of the lag where it is nil or wrong, and what it is. Entries have the ids 1-0, 2-0, ...
func TestLagWhereTheServerIsWrong(t *testing.T) {
	t.Parallel()
	ten := inspectTimes(10, "XADD @queue %d-0 body a")
	read := func(n int) string { return fmt.Sprintf("XREADGROUP GROUP g c COUNT %d STREAMS @queue >\n", n) }
	cases := []struct {
		name, before string
		want         int64
		wrong        string // what Redis 7.0 says: nil, a wrong number, or empty when it is right
	}{
		{"a new group", ten + "XGROUP CREATE @queue g 0", 10, ""},
		{"some are read", ten + "XGROUP CREATE @queue g 0\n" + read(3), 7, ""},
		{"all are read", ten + "XGROUP CREATE @queue g 0\n" + read(10), 0, ""},
		{"nothing was ever added", "XGROUP CREATE @queue g 0 MKSTREAM", 0, ""},
		{"a group made at the end of an empty stream", "XGROUP CREATE @queue g $ MKSTREAM\n" + ten, 10, ""},

		{"made amid the stream", ten + "XGROUP CREATE @queue g 4-0", 6, "nil"},
		{"made amid the stream, with a number from somewhere", ten + "XGROUP CREATE @queue g 4-0 ENTRIESREAD 9", 6, "1"},
		{"set back", ten + "XGROUP CREATE @queue g 0\n" + read(10) + "XGROUP SETID @queue g 7-0", 3, "nil"},
		{"set with a number too large", ten + "XGROUP CREATE @queue g 0\nXGROUP SETID @queue g 7-0 ENTRIESREAD 100", 3, "-90"},
		{"set with a number too small", ten + "XGROUP CREATE @queue g 0\nXGROUP SETID @queue g 7-0 ENTRIESREAD 2", 3, "8"},
		{"set to where nothing is", ten + "XGROUP CREATE @queue g 0\nXGROUP SETID @queue g 4-7", 6, "nil"},
		{"set beyond the end", ten + "XGROUP CREATE @queue g 0\nXGROUP SETID @queue g 99-0", 0, "nil"},

		{"an undelivered one deleted", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XDEL @queue 5-0", 7, "nil"},
		{"the last one deleted", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XDEL @queue 10-0", 7, "nil"},
		{"the only undelivered one deleted", ten + "XGROUP CREATE @queue g 0\n" + read(9) + "XDEL @queue 10-0", 0, "nil"},
		{"delivered ones deleted", ten + "XGROUP CREATE @queue g 0\n" + read(9) + "XDEL @queue 1-0 5-0 9-0", 1, "nil"},
		{"all deleted", "XADD @queue 1-0 body a\nXGROUP CREATE @queue g 0\nXDEL @queue 1-0", 0, ""},
		{"read past a deleted one", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XDEL @queue 5-0\n" + read(4), 3, "nil"},

		{"undelivered ones trimmed", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XTRIM @queue MINID 6-0", 5, "8"},
		{"undelivered ones trimmed by length", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XTRIM @queue MAXLEN 1", 1, "8"},
		{"undelivered ones trimmed, one more read", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XTRIM @queue MINID 6-0\n" + read(1), 4, "7"},
		{"undelivered ones trimmed, four more read", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XTRIM @queue MINID 6-0\n" + read(4), 1, "4"},
		{"all undelivered ones trimmed", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XTRIM @queue MAXLEN 0", 0, "8"},
		{"all trimmed, and one added", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XTRIM @queue MAXLEN 0\nXADD @queue 11-0 body a", 1, "9"},
		{"delivered ones trimmed", ten + "XGROUP CREATE @queue g 0\n" + read(5) + "XTRIM @queue MINID 5-0", 5, ""},
		{
			"deleted and trimmed, and read on", ten + "XGROUP CREATE @queue g 0\n" + read(2) + "XDEL @queue 3-0\nXTRIM @queue MINID 4-0\n" + read(3),
			4, "5",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newInspectRig(t)
			r.skipBefore7(c.before)
			r.run(c.before)
			if got := r.lag(); got != c.want {
				t.Errorf("Lag is %d, want %d", got, c.want)
			}
			if d := r.depth(); d.Backlog != c.want {
				t.Errorf("Depth says %d, want %d", d.Backlog, c.want)
			}
			if said := r.serverLag(); r.version() == "7.0" && said != c.wrong && !(c.wrong == "" && said == fmt.Sprint(c.want)) {
				t.Errorf("the server says %s; this case is for %q", said, c.wrong)
			}
		})
	}
}

// skipBefore7 ends a test of commands that Redis has since version 7.
func (r *inspectRig) skipBefore7(commands string) {
	r.t.Helper()
	if strings.Contains(commands, "ENTRIESREAD") && redistest.Major(r.t, r.redis) < 7 {
		r.t.Skip("SKIPPED: this server keeps no lag that could be set wrongly")
	}
}

// serverLag is the lag in XINFO GROUPS.
func (r *inspectRig) serverLag() string {
	r.t.Helper()
	groups, err := r.redis.Do(r.ctx, r.redis.B().XinfoGroups().Key(r.key("queue")).Build()).ToArray()
	if err != nil {
		r.t.Fatal(err)
	}
	g, err := groups[0].AsMap()
	if err != nil {
		r.t.Fatal(err)
	}
	lag := g["lag"]
	n, err := lag.AsInt64()
	if err != nil {
		return "nil"
	}
	return fmt.Sprint(n)
}

// version is the first two parts of the server's version.
func (r *inspectRig) version() string {
	r.t.Helper()
	about, err := r.redis.Do(r.ctx, r.redis.B().Info().Section("server").Build()).ToString()
	if err != nil {
		r.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(about, "redis_version:")
	parts := strings.SplitN(rest, ".", 3)
	return parts[0] + "." + parts[1]
}

// However entries are added, read, deleted and trimmed, and the group is set, the lag is what is there after its place.
func TestLagIsWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	steps := []string{"add", "add", "read", "read", "delete", "trim", "set"}
	if redistest.Major(t, r.redis) >= 7 {
		steps = append(steps, "set wrongly")
	}
	rapid.Check(t, func(rt *rapid.T) {
		r.run("DEL @queue\nXGROUP CREATE @queue g 0 MKSTREAM")
		top := 0
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			id := rapid.IntRange(0, top+1).Draw(rt, "id")
			switch rapid.SampledFrom(steps).Draw(rt, "step") {
			case "add":
				for range rapid.IntRange(1, 20).Draw(rt, "n") {
					top++
					r.run(fmt.Sprintf("XADD @queue %d-0 body a", top))
				}
			case "read":
				r.run(fmt.Sprintf("XREADGROUP GROUP g c COUNT %d NOACK STREAMS @queue >", id+1))
			case "delete":
				r.run(fmt.Sprintf("XDEL @queue %d-0", id))
			case "trim":
				r.run(fmt.Sprintf("XTRIM @queue MINID %d-0", id))
			case "set":
				r.run(fmt.Sprintf("XGROUP SETID @queue g %d-0", id))
			case "set wrongly":
				r.run(fmt.Sprintf("XGROUP SETID @queue g %d-0 ENTRIESREAD %d", id, rapid.IntRange(0, 2*top).Draw(rt, "entries read")))
			}
			if got, want := r.lag(), r.undelivered(); got != want {
				rt.Fatalf("Lag is %d, and %d are there after the group's place; the server says %s", got, want, r.serverLag())
			}
		}
	})
}

// undelivered counts what is after the place of the group.
func (r *inspectRig) undelivered() (n int64) {
	r.t.Helper()
	groups, err := r.client.Groups(r.ctx, "q")
	if err != nil || len(groups) != 1 {
		r.t.Fatal(groups, err)
	}
	delivered, _ := wire.ParseID(groups[0].Delivered)
	entries, err := r.redis.Do(r.ctx, r.redis.B().Xrange().Key(r.key("queue")).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if id, ok := wire.ParseID(e.ID); ok && delivered.Less(id) {
			n++
		}
	}
	return n
}

// With more than a call or two would count at both ends, the server's word is taken where it can be true, else all is counted.
func TestLagOfLongStreams(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, place string
		want        int64
	}{
		{"the server does not know, nearer to the end", "SETID @queue g 2000-0", 1000},
		{"the server does not know, nearer to the start", "SETID @queue g 900-0", 2100},
		{"the server says fewer than are there", "SETID @queue g 1500-0 ENTRIESREAD 2900", 1500},
		{"the server says none", "SETID @queue g 1500-0 ENTRIESREAD 3000", 1500},
		{"the server says less than none", "SETID @queue g 1500-0 ENTRIESREAD 4000", 1500},
		{"the server says more than can be", "SETID @queue g 1500-0 ENTRIESREAD 100", 1500},
		{"the server says what can be", "SETID @queue g 1500-0 ENTRIESREAD 1499", 1501},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newInspectRig(t)
			r.skipBefore7(c.place)
			r.fill("queue", "queue", 3000)
			r.run("XGROUP CREATE @queue g 0\nXGROUP " + c.place)
			if got := r.lag(); got != c.want {
				t.Errorf("Lag is %d, want %d", got, c.want)
			}
		})
	}
}
