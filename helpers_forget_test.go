package xstreamq_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// forgetRig is a client, and a plain connection to look from outside. Queue "q" and group "g" are what its tests are about.
type forgetRig struct {
	t      *testing.T
	prefix string
	redis  rueidis.Client
	client *xstreamq.Client
}

func newForgetRig(t *testing.T, cfg xstreamq.Config) *forgetRig {
	t.Helper()
	cfg.KeyPrefix = redistest.Prefix(t)
	return &forgetRig{t: t, prefix: cfg.KeyPrefix, redis: redistest.Client(t), client: open(t, cfg)}
}

// forgetAlone is a rig on a server of its own.
func forgetAlone(t *testing.T, cfg xstreamq.Config) (*forgetRig, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	r := &forgetRig{t: t, prefix: cfg.KeyPrefix, redis: redistest.Dial(t, server.URL()), client: stopConnect(t, "open", server.URL(), cfg)}
	return r, server
}

// key resolves the short name of a key: queue, retry, dlq, backoff, done, delayed, registry.
func (r *forgetRig) key(name string) string {
	switch name {
	case "queue":
		return r.prefix + "{q}"
	case "delayed":
		return r.prefix + "{q}.delayed"
	case "registry":
		return r.prefix + "xstreamq:registry"
	case "backoff":
		return r.prefix + "{q}.g.delayed"
	}
	return r.prefix + "{q}.g." + name
}

// do sends commands, one a line; @name is a key.
func (r *forgetRig) do(commands string) {
	r.t.Helper()
	for line := range strings.Lines(commands) {
		if strings.TrimSpace(line) != "" {
			r.ask(line)
		}
	}
}

// ask sends one command and returns its answer.
func (r *forgetRig) ask(line string) rueidis.RedisMessage {
	r.t.Helper()
	words := strings.Fields(line)
	for i, w := range words {
		if name, ok := strings.CutPrefix(w, "@"); ok {
			words[i] = r.key(name)
		}
	}
	m, err := r.redis.Do(context.Background(), r.redis.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		r.t.Fatalf("%.200s: %v", line, err)
	}
	return m
}

func (r *forgetRig) int(line string) int64 {
	r.t.Helper()
	m := r.ask(line)
	n, err := m.AsInt64()
	if err != nil {
		r.t.Fatalf("%s: %v", line, err)
	}
	return n
}

// script runs Lua on the server: the quickest way to a large state. KEYS are the named keys.
func (r *forgetRig) script(text string, names ...string) {
	r.t.Helper()
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = r.key(name)
	}
	cmd := r.redis.B().Eval().Script(text).Numkeys(int64(len(keys))).Key(keys...).Build()
	if err := r.redis.Do(context.Background(), cmd).Error(); err != nil && !rueidis.IsRedisNil(err) {
		r.t.Fatal(err)
	}
}

// state is what there is of the group: whether its row, its group on the queue and each of its keys exist.
func (r *forgetRig) state() string {
	r.t.Helper()
	var out []string
	if row := r.ask("HGET @registry q/g"); !row.IsNil() {
		text, _ := row.ToString()
		out = append(out, "row "+text)
	}
	if r.int("EXISTS @queue") == 1 {
		for _, about := range r.list("XINFO GROUPS @queue") {
			fields, _ := about.AsMap()
			name, pending := fields["name"], fields["pending"]
			text, _ := name.ToString()
			n, _ := pending.AsInt64()
			out = append(out, fmt.Sprintf("group %s pending %d", text, n))
		}
	}
	for _, name := range []string{"retry", "dlq", "backoff", "done"} {
		if r.int("EXISTS @"+name) == 1 {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

func (r *forgetRig) list(line string) []rueidis.RedisMessage {
	r.t.Helper()
	m := r.ask(line)
	items, err := m.ToArray()
	if err != nil {
		r.t.Fatalf("%s: %v", line, err)
	}
	return items
}

// hooked is a rueidis client that tells of commands before it sends them, and after they were answered.
type hooked struct {
	rueidis.Client
	before, after func(command string)
}

func (h *hooked) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	words := cmd.Commands()
	name := words[0]
	if h.before != nil {
		h.before(name)
	}
	result := h.Client.Do(ctx, cmd)
	if h.after != nil {
		h.after(name)
	}
	return result
}
