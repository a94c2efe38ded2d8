package xstreamq

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// scriptCase is one row of a script's table: the state before, the call, its reply, the state after.
type scriptCase struct {
	name   string
	before string // commands, one a line, see tokens
	call   scriptCall
	reply  string
	after  string // every key of the group, see view.dump; empty = as before
	gap    string // what the embedded server lacks for this case, which must then fail there
}

// scriptCall calls the generated function of a script.
type scriptCall func(e scriptEnv) rueidis.RedisResult

// scriptEnv is what a case works on: queue q and its group g, under a prefix of its own.
type scriptEnv struct {
	ctx   context.Context
	redis rueidis.Client
	keys  keys.Set
	now   int64 // server time in ms, before the call
}

func (e scriptEnv) onRetry() scriptEnv {
	e.keys = e.keys.OnRetry("g")
	return e
}

// scriptServer is a server that the tables run on.
type scriptServer struct {
	name     string
	redis    rueidis.Client
	prefix   string
	embedded bool
}

// scriptServers returns the real server and the embedded one, which keeps the demonstration working without a server.
func scriptServers(t *testing.T) []scriptServer {
	t.Helper()
	prefix := redistest.Prefix(t)
	small := miniredis.RunT(t)
	return []scriptServer{
		{name: "redis", redis: redistest.Client(t), prefix: prefix},
		{name: "embedded", redis: redistest.Dial(t, "redis://"+small.Addr()), prefix: prefix, embedded: true},
	}
}

// runScriptCases runs a table on both servers.
func runScriptCases(t *testing.T, cases []scriptCase) {
	t.Helper()
	t.Parallel()
	for _, server := range scriptServers(t) {
		t.Run(server.name, func(t *testing.T) {
			for i, c := range cases {
				t.Run(c.name, func(t *testing.T) { server.run(t, i, c) })
			}
		})
	}
}

// Gaps of the embedded server that several tables meet.
const (
	gapManyValues = "its Lua hands no 5,000 values to one call"
	gapUpvalue    = "its Lua forgets an outer local once an error was caught"
)

// bystanders are the keys of another group of the same queue, and of another queue: no call may touch them.
const bystanders = `
	XADD @retry 1-0 body r oid 1-0 rc 1
	XGROUP CREATE @retry h-retry 0
	XREADGROUP GROUP h-retry c~1 STREAMS @retry >
	XADD @dlq 1-0 body d
	ZADD @backoff 1 "1-0\x004:body1:b"
	ZADD @done 1 1-0`

const otherQueue = bystanders + `
	XADD @queue 1-0 body a
	XGROUP CREATE @queue g 0
	XREADGROUP GROUP g c~1 STREAMS @queue >
	XCLAIM @queue g c~1 0 1-0 IDLE 900000 RETRYCOUNT 1 JUSTID
	ZADD @delayed 1 "d1-ff\x004:body1:b"`

// env is the place of one case: keys of its own, and the view of them.
func (s scriptServer) env(t *testing.T, number int) (scriptEnv, *view) {
	t.Helper()
	prefix := s.prefix + strconv.Itoa(number) + ":"
	v := newView(t, s.redis, prefix, "q", "g")
	v.from = v.clock()
	return scriptEnv{ctx: t.Context(), redis: s.redis, keys: keys.ForGroup(prefix, "q", "g"), now: v.from}, v
}

func (s scriptServer) run(t *testing.T, number int, c scriptCase) {
	e, own := s.env(t, number)
	others := []*view{
		newView(t, s.redis, own.prefix, "q", "h").without("queue", "delayed", "registry"),
		newView(t, s.redis, own.prefix, "other", "g").without("registry"),
	}
	own.do(c.before, e.now)
	others[0].do(bystanders, e.now)
	others[1].do(otherQueue, e.now)
	before := own.dump()
	otherBefore := []string{others[0].dump(), others[1].dump()}

	reply := c.call(e)
	own.to = own.clock()
	got := "reply " + own.reply(reply) + "\n" + own.dump()

	after := c.after
	if after == "" {
		after = before
	}
	want := "reply " + c.reply + "\n" + unindent(after)
	diff := cmp.Diff(want, forgive(want, got))
	for i := range others {
		diff += cmp.Diff(otherBefore[i], others[i].dump())
	}
	diff += own.strangers(others...)
	switch {
	case !s.embedded || c.gap == "":
		if diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	case diff == "":
		t.Errorf("the embedded server passes: %q is no gap any more", c.gap)
	default:
		t.Logf("not so on the embedded server: %s", c.gap)
	}
}

// forgive takes over from want each line that holds "…", where that stands for any text and the rest matches.
func forgive(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if !strings.Contains(w[i], "…") {
			continue
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(w[i]), "…", ".*")
		if regexp.MustCompile("^" + pattern + "$").MatchString(g[i]) {
			g[i] = w[i]
		}
	}
	return strings.Join(g, "\n")
}

// unindent removes the indentation of the first line from all lines, and empty lines around them.
func unindent(text string) string {
	text = strings.Trim(text, "\n\t")
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], "\t")
	}
	return strings.Join(lines, "\n") + "\n"
}

// tokens splits a command of a case: words, or Go strings in double quotes. @name is the key of that role, $now+5 the
// server's time and 5 ms, $now+5-0 an id of that time.
func (v *view) tokens(line string, now int64) []string {
	v.t.Helper()
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] == '"' {
			quoted, err := strconv.QuotedPrefix(line)
			if err != nil {
				v.t.Fatalf("%s: %v", line, err)
			}
			word, _ := strconv.Unquote(quoted)
			out, line = append(out, word), line[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		line = rest
		switch {
		case strings.HasPrefix(word, "@"):
			key := v.key(word[1:])
			if key == "" {
				v.t.Fatalf("no key is called %s", word)
			}
			word = key
		case strings.HasPrefix(word, "$now"):
			delta, isID := strings.CutSuffix(word[len("$now"):], "-0")
			ms, _ := strconv.ParseInt(delta, 10, 64)
			if word = strconv.FormatInt(now+ms, 10); isID {
				word += "-0"
			}
		}
		out = append(out, word)
	}
	return out
}

// do sends the commands of a case.
func (v *view) do(commands string, now int64) {
	v.t.Helper()
	var cmds rueidis.Commands
	var lines []string
	for line := range strings.Lines(commands) {
		if words := v.tokens(line, now); len(words) > 0 {
			cmds = append(cmds, v.redis.B().Arbitrary(words...).Build())
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if len(cmds) == 0 {
		return
	}
	for i, r := range v.redis.DoMulti(v.t.Context(), cmds...) {
		if err := r.Error(); err != nil && !rueidis.IsRedisNil(err) {
			v.t.Fatalf("%.200s: %v", lines[i], err)
		}
	}
}

// span repeats a line for first to last; %d in it is the number.
func span(first, last uint64, format string) string {
	var b strings.Builder
	for i := range last - first + 1 {
		b.WriteString(strings.ReplaceAll(format, "%d", strconv.FormatUint(first+i, 10)))
		b.WriteString("\n")
	}
	return b.String()
}

func times(n uint64, format string) string { return span(1, n, format) }

// manyFields is an entry's n fields besides its body, as a command has them.
func manyFields(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, " f%d v%d", i, i)
	}
	return b.String()
}
