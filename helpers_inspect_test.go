package xstreamq_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// inspectRig looks at queue q and its group g under a prefix of its own.
type inspectRig struct {
	t      *testing.T
	ctx    context.Context
	prefix string
	redis  rueidis.Client
	client *xstreamq.Client
}

func newInspectRig(t *testing.T) *inspectRig {
	t.Helper()
	return newInspectRigAt(t, redistest.URL(t), redistest.Prefix(t))
}

func newInspectRigAt(t *testing.T, url, prefix string) *inspectRig {
	t.Helper()
	c, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &inspectRig{t: t, ctx: t.Context(), prefix: prefix, redis: redistest.Dial(t, url), client: c}
}

// key is the key of a role: of queue q and group g.
func (r *inspectRig) key(role string) string {
	base := r.prefix + "{q}"
	switch role {
	case "queue":
		return base
	case "delayed":
		return base + ".delayed"
	case "retry", "dlq":
		return base + ".g." + role
	case "backoff":
		return base + ".g.delayed"
	case "registry":
		return r.prefix + "xstreamq:registry"
	}
	r.t.Fatalf("no key is called %s", role)
	return ""
}

// run sends commands, one a line: words, or Go strings in double quotes; @name is the key of that role.
func (r *inspectRig) run(commands string) {
	r.t.Helper()
	var cmds rueidis.Commands
	for line := range strings.Lines(commands) {
		if words := r.words(line); len(words) > 0 {
			cmds = append(cmds, r.redis.B().Arbitrary(words...).Build())
		}
	}
	for i, answer := range r.redis.DoMulti(r.ctx, cmds...) {
		if err := answer.Error(); err != nil && !rueidis.IsRedisNil(err) {
			r.t.Fatalf("command %d of %.300s: %v", i+1, commands, err)
		}
	}
}

func (r *inspectRig) words(line string) []string {
	r.t.Helper()
	var out []string
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
			word, _ := strconv.Unquote(quoted)
			out, line = append(out, word), line[len(quoted):]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if role, ok := strings.CutPrefix(word, "@"); ok {
			word = r.key(role)
		}
		out, line = append(out, word), rest
	}
	return out
}

// times repeats a line for 1 to n; %d in it is the number.
func inspectTimes(n int, line string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(line, "%d", strconv.Itoa(i+1)) + "\n")
	}
	return b.String()
}

// depth is the depth of group g, without what changes by itself.
func (r *inspectRig) depth() xstreamq.Depth {
	r.t.Helper()
	d, err := r.client.Depth(r.ctx, "q", "g")
	if err != nil {
		r.t.Fatal(err)
	}
	d.Oldest = 0
	return d
}

func (r *inspectRig) lag() int64 {
	r.t.Helper()
	n, err := r.client.Lag(r.ctx, "q", "g")
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}
