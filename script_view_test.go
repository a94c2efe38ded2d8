package xstreamq

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// view shows all keys of one group as text: entries, pending rows, members taken apart. What the server chooses is masked:
// a new id is *, a time is given as its distance from the call.
type view struct {
	t        *testing.T
	redis    rueidis.Client
	prefix   string
	roles    [][2]string // name, key
	from, to int64       // server ms at the start of the case and after the call
}

func newView(t *testing.T, c rueidis.Client, prefix, queue, group string) *view {
	k := keys.ForGroup(prefix, queue, group)
	return &view{t: t, redis: c, prefix: prefix, roles: [][2]string{
		{"queue", k.Queue}, {"retry", k.Retry}, {"dlq", k.DLQ}, {"delayed", k.Delayed}, {"backoff", k.Backoff},
		{"done", k.Done}, {"lock", k.Lock}, {"retrylock", k.OnRetry(group).Lock}, {"registry", k.Registry},
	}}
}

// without leaves keys out that belong to somebody else.
func (v *view) without(names ...string) *view {
	v.roles = slices.DeleteFunc(v.roles, func(r [2]string) bool { return slices.Contains(names, r[0]) })
	return v
}

func (v *view) key(name string) string {
	for _, r := range v.roles {
		if r[0] == name {
			return r[1]
		}
	}
	return ""
}

func (v *view) ask(words ...string) rueidis.RedisMessage {
	v.t.Helper()
	m, err := v.redis.Do(v.t.Context(), v.redis.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		v.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return m
}

func (v *view) list(words ...string) []rueidis.RedisMessage {
	v.t.Helper()
	list, err := v.redis.Do(v.t.Context(), v.redis.B().Arbitrary(words...).Build()).ToArray()
	if err != nil && !rueidis.IsRedisNil(err) {
		v.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return list
}

func str(m rueidis.RedisMessage) string {
	s, _ := m.ToString()
	return s
}

// clock is the server's time in ms.
func (v *view) clock() int64 {
	v.t.Helper()
	now := v.list("TIME")
	seconds, _ := now[0].AsInt64()
	micros, _ := now[1].AsInt64()
	return seconds*1000 + micros/1000
}

// dump is the state of all keys, in the order of a message's life.
func (v *view) dump() string {
	v.t.Helper()
	var b strings.Builder
	for _, r := range v.roles {
		name, key := r[0], r[1]
		switch str(v.ask("TYPE", key)) {
		case "none":
		case "stream":
			fmt.Fprintf(&b, "%s\n", name)
			v.stream(&b, key)
		case "zset":
			fmt.Fprintf(&b, "%s\n", name)
			v.zset(&b, key)
		case "hash":
			fmt.Fprintf(&b, "%s\n", name)
			v.hash(&b, key)
		case "string":
			fmt.Fprintf(&b, "%s %s%s\n", name, str(v.ask("GET", key)), v.expiry(key))
		default:
			fmt.Fprintf(&b, "%s of another type\n", name)
		}
	}
	return b.String()
}

func (v *view) expiry(key string) string {
	m := v.ask("PTTL", key)
	left, _ := m.AsInt64()
	if left < 0 {
		return ""
	}
	return fmt.Sprintf(" for %ds", roundSeconds(left))
}

func (v *view) stream(b *strings.Builder, key string) {
	for _, entry := range v.list("XRANGE", key, "-", "+") {
		parts, _ := entry.ToArray()
		fields, _ := parts[1].AsStrSlice()
		fmt.Fprintf(b, "  %s%s\n", v.mask(str(parts[0])), v.fields(fields))
	}
	var groups []string
	for _, g := range v.list("XINFO", "GROUPS", key) {
		info, err := g.AsMap()
		if err != nil {
			v.t.Fatal(err)
		}
		groups = append(groups, str(info["name"])+" "+str(info["last-delivered-id"]))
	}
	slices.Sort(groups)
	for _, g := range groups {
		name, last, _ := strings.Cut(g, " ")
		fmt.Fprintf(b, "  %s at %s:%s\n", name, v.mask(last), v.consumers(key, name))
		for _, row := range v.list("XPENDING", key, name, "-", "+", "1000") {
			parts, _ := row.ToArray()
			id, owner := str(parts[0]), str(parts[1])
			idle, _ := parts[2].AsInt64()
			count, _ := parts[3].AsInt64()
			fmt.Fprintf(b, "    %s %s x%d", v.mask(id), owner, count)
			if s := roundSeconds(idle); s > 0 {
				fmt.Fprintf(b, " idle %ds", s)
			}
			b.WriteString("\n")
		}
	}
}

func (v *view) consumers(key, group string) string {
	var names []string
	for _, c := range v.list("XINFO", "CONSUMERS", key, group) {
		info, err := c.AsMap()
		if err != nil {
			v.t.Fatal(err)
		}
		names = append(names, " "+str(info["name"]))
	}
	slices.Sort(names)
	return strings.Join(names, "")
}

func (v *view) zset(b *strings.Builder, key string) {
	scores, err := v.redis.Do(v.t.Context(), v.redis.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build()).AsZScores()
	if err != nil {
		v.t.Fatal(err)
	}
	for _, z := range scores {
		id, packed, isEntry := strings.Cut(z.Member, "\x00")
		fields, err := wire.Unpack(packed)
		if !isEntry || err != nil {
			fmt.Fprintf(b, "  %s %s\n", v.moment(int64(z.Score)), v.mask(show(z.Member)))
			continue
		}
		fmt.Fprintf(b, "  %s %s%s\n", v.moment(int64(z.Score)), v.mask(show(id)), v.fields(fields))
	}
}

func (v *view) hash(b *strings.Builder, key string) {
	values, err := v.redis.Do(v.t.Context(), v.redis.B().Hgetall().Key(key).Build()).AsStrMap()
	if err != nil {
		v.t.Fatal(err)
	}
	var lines []string
	for name, value := range values {
		lines = append(lines, fmt.Sprintf("  %s %s\n", name, v.mask(value)))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
}

// fields shows an entry; one of very many fields as their number and checksum.
func (v *view) fields(flat []string) string {
	if len(flat) > 60 {
		return " " + brief(flat)
	}
	var b strings.Builder
	for i := 0; i < len(flat); i += 2 {
		fmt.Fprintf(&b, " %s=%s", show(flat[i]), v.mask(show(flat[i+1])))
	}
	return b.String()
}

func brief(flat []string) string {
	return fmt.Sprintf("<%d fields %08x>", len(flat)/2, crc32.ChecksumIEEE([]byte(strings.Join(flat, "\x00"))))
}

// show quotes what is not plain, and shortens what is long.
func show(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("<%d bytes %08x>", len(s), crc32.ChecksumIEEE([]byte(s)))
	}
	return quote(s)
}

func quote(s string) string {
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` || s == "" || strings.Contains(s, " ") {
		return quoted
	}
	return s
}

var (
	newID    = regexp.MustCompile(`\b1\d{12}-\d+\b`)
	bareTime = regexp.MustCompile(`\b1\d{12}\b`)
)

// mask hides what the server chose: new ids, and times near the call. The due time in the id of a delayed message is a time.
func (v *view) mask(s string) string {
	if due, nonce, ok := strings.Cut(strings.TrimPrefix(s, "d"), "-"); ok && wire.Scheduled(s) && len(due) == 13 {
		ms, _ := strconv.ParseInt(due, 10, 64)
		return "d(" + v.moment(ms) + ")-" + nonce
	}
	s = newID.ReplaceAllString(s, "*")
	return bareTime.ReplaceAllStringFunc(s, func(ms string) string {
		n, _ := strconv.ParseInt(ms, 10, 64)
		return v.moment(n)
	})
}

// moment shows a time in ms: as it is when it is a number of a case, else as the distance from the call. The cases wait for
// tens of seconds: a rest is the time that the test itself took, or a mistake.
func (v *view) moment(ms int64) string {
	if ms < 1e12 || ms > 1e14 {
		return strconv.FormatInt(ms, 10)
	}
	tens := (ms - v.from) / 10000
	if ms < v.from+10000*tens {
		tens-- // rounded down, also below zero
	}
	switch rest := ms - v.from - 10000*tens; {
	case rest > max(0, v.to-v.from):
		return fmt.Sprintf("now%+dms", ms-v.from)
	case tens == 0:
		return "now"
	default:
		return fmt.Sprintf("now%+ds", 10*tens)
	}
}

func roundSeconds(ms int64) int64 { return (ms + 5000) / 10000 * 10 }

// noise is what servers add to the text of an error: the place in the script, a trace.
var noise = regexp.MustCompile(`(?:Error running script \(call to f_[0-9a-f]+\): )?(?:@user_script: ?\d+: )+-?| script: [0-9a-f]{40}, on @user_script:\d+\.?|` +
	`Error compiling script \(new function\): |:\d+: | stack traceback: .*`)

// reply shows what a script answered.
func (v *view) reply(r rueidis.RedisResult) string {
	v.t.Helper()
	m, err := r.ToMessage()
	if err != nil {
		if _, ok := rueidis.IsRedisErr(err); !ok {
			v.t.Fatal(err)
		}
		return "error " + v.problem(err.Error())
	}
	return v.message(m)
}

func (v *view) message(m rueidis.RedisMessage) string {
	if list, err := m.ToArray(); err == nil {
		items := make([]string, len(list))
		for i := range list {
			items[i] = v.message(list[i])
		}
		return "[" + strings.Join(items, " ") + "]"
	}
	if n, err := m.ToInt64(); err == nil {
		return v.moment(n)
	}
	s, err := m.ToString()
	if err != nil {
		return err.Error()
	}
	return v.mask(quote(v.problem(s)))
}

// problem takes the server's own words off an error text: where in the script it was, and key names that no case knows.
func (v *view) problem(s string) string {
	s, _, _ = strings.Cut(noise.ReplaceAllString(s, ""), "\n")
	if strings.HasPrefix(s, "-OOM ") {
		s = s[1:] // as Redis 6.2 says it in a script
	}
	for _, r := range v.roles {
		s = strings.ReplaceAll(s, r[1]+" ", "@"+r[0]+" ")
	}
	return s
}

// strangers names keys under the prefix that no view knows.
func (v *view) strangers(others ...*view) string {
	v.t.Helper()
	known := map[string]bool{}
	for _, o := range append(others, v) {
		for _, r := range o.roles {
			known[r[1]] = true
		}
	}
	var found []string
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		page, err := v.redis.Do(v.t.Context(), v.redis.B().Scan().Cursor(cursor).Match(v.prefix+"*").Count(1000).Build()).AsScanEntry()
		if err != nil {
			v.t.Fatal(err)
		}
		for _, key := range page.Elements {
			if !known[key] {
				found = append(found, "unexpected key "+key+"\n")
			}
		}
		cursor = page.Cursor
	}
	return strings.Join(found, "")
}
