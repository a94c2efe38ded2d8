package xstreamq_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// leasePatience is for what takes a moment on an idle machine; a busy one stalls.
const leasePatience = 30 * time.Second

// leaseRig is the queue "q" with the group "g" under a prefix of its own, and a plain client to look at it.
type leaseRig struct {
	t      *testing.T
	url    string
	prefix string
	keys   keys.Set
	redis  rueidis.Client
}

func newLeaseRig(t *testing.T) *leaseRig {
	t.Helper()
	return leaseRigAt(t, redistest.URL(t), redistest.Prefix(t))
}

func leaseRigAt(t *testing.T, url, prefix string) *leaseRig {
	t.Helper()
	return &leaseRig{t: t, url: url, prefix: prefix, keys: keys.ForGroup(prefix, "q", "g"), redis: redistest.Dial(t, url)}
}

// open returns a client of the rig and its queue. It is closed at the end of the test, and then waits for no handler.
func (r *leaseRig) open(cfg xstreamq.Config) (*xstreamq.Client, *xstreamq.Queue[string]) {
	r.t.Helper()
	cfg.KeyPrefix = r.prefix
	if cfg.DrainTimeout == 0 {
		cfg.DrainTimeout = time.Second
	}
	c, err := xstreamq.Open(r.url, cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	q, err := xstreamq.NewQueue(c, "q", xstreamq.WithCodec[string](xstreamq.String{}))
	if err != nil {
		r.t.Fatal(err)
	}
	return c, q
}

// start returns a client that handles messages.
func (r *leaseRig) start(cfg xstreamq.Config, opts xstreamq.SubscribeOptions, handle xstreamq.Handler[string]) *xstreamq.Client {
	r.t.Helper()
	c, q := r.open(cfg)
	if _, err := q.Subscribe("g", handle, opts); err != nil {
		r.t.Fatal(err)
	}
	if err := c.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// publish stores messages without a client, as any producer may, and returns their ids.
func (r *leaseRig) publish(bodies ...string) []string {
	r.t.Helper()
	cmds := make(rueidis.Commands, len(bodies))
	for i, b := range bodies {
		cmds[i] = r.redis.B().Xadd().Key(r.keys.Queue).Id("*").FieldValue().FieldValue("body", b).Build()
	}
	ids := make([]string, len(bodies))
	for i, reply := range r.redis.DoMulti(r.t.Context(), cmds...) {
		var err error
		if ids[i], err = reply.ToString(); err != nil {
			r.t.Fatal(err)
		}
	}
	return ids
}

// ask sends one command given as words.
func (r *leaseRig) ask(words ...string) rueidis.RedisMessage {
	r.t.Helper()
	m, err := r.redis.Do(r.t.Context(), r.redis.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		r.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return m
}

// now is the server's time in whole milliseconds, as the scripts count.
func (r *leaseRig) now() time.Time {
	r.t.Helper()
	parts, err := r.redis.Do(r.t.Context(), r.redis.B().Time().Build()).AsIntSlice()
	if err != nil {
		r.t.Fatal(err)
	}
	return time.Unix(parts[0], parts[1]*1000).Truncate(time.Millisecond)
}

// leaseEntry is an entry of a stream, or a member of a zset taken apart.
type leaseEntry struct {
	ID     string
	Due    time.Time // of a zset
	Fields map[string]string
}

// entries returns what a stream holds.
func (r *leaseRig) entries(stream string) []leaseEntry {
	r.t.Helper()
	found, err := r.redis.Do(r.t.Context(), r.redis.B().Xrange().Key(stream).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([]leaseEntry, len(found))
	for i, e := range found {
		out[i] = leaseEntry{ID: e.ID, Fields: e.FieldValues}
	}
	return out
}

// dead returns the dead letters.
func (r *leaseRig) dead() []leaseEntry {
	r.t.Helper()
	return r.entries(r.keys.DLQ)
}

// waiting returns the messages that wait out a backoff.
func (r *leaseRig) waiting() []leaseEntry {
	r.t.Helper()
	found, err := r.redis.Do(r.t.Context(), r.redis.B().Zrange().Key(r.keys.Backoff).Min("0").Max("-1").Withscores().Build()).AsZScores()
	if err != nil {
		r.t.Fatal(err)
	}
	out := make([]leaseEntry, len(found))
	for i, z := range found {
		id, packed, _ := strings.Cut(z.Member, "\x00")
		flat, err := wire.Unpack(packed)
		if err != nil {
			r.t.Fatal(err)
		}
		out[i] = leaseEntry{ID: id, Due: time.UnixMilli(int64(z.Score)), Fields: map[string]string{}}
		for j := 0; j+1 < len(flat); j += 2 {
			out[i].Fields[flat[j]] = flat[j+1]
		}
	}
	return out
}

// leaseRow is a pending entry.
type leaseRow struct {
	ID, Consumer string
	Idle         time.Duration
}

// pending returns what workers hold: of the queue, and of the retry stream.
func (r *leaseRig) pending() []leaseRow {
	r.t.Helper()
	var out []leaseRow
	for _, lane := range [][2]string{{r.keys.Queue, "g"}, {r.keys.Retry, keys.RetryGroup("g")}} {
		rows, err := r.redis.Do(r.t.Context(), r.redis.B().Arbitrary("XPENDING", lane[0], lane[1], "-", "+", "10000").Build()).ToArray()
		if err != nil && strings.HasPrefix(err.Error(), "NOGROUP") {
			continue // the first worker is still on its way
		}
		if err != nil {
			r.t.Fatal(err)
		}
		for i := range rows {
			row, err := rows[i].ToArray()
			if err != nil {
				r.t.Fatal(err)
			}
			id, _ := row[0].ToString()
			consumer, _ := row[1].ToString()
			idle, _ := row[2].AsInt64()
			out = append(out, leaseRow{id, consumer, time.Duration(idle) * time.Millisecond})
		}
	}
	return out
}

// places says where each message is at one moment, by the id that its publish returned. What is nowhere is finished. Without a
// group nothing was delivered yet.
func (r *leaseRig) places() map[string][]string {
	r.t.Helper()
	const script = `
local q = redis.call('XRANGE', KEYS[1], '-', '+')
local last, pending = '0-0', {}
for _, g in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  if g[2] == 'g' then last = g[8] end
end
for _, row in ipairs(redis.pcall('XPENDING', KEYS[1], 'g', '-', '+', 100000)) do pending[row[1]] = true end
local function less(a, b)
  local am, as = string.match(a, '(%d+)-(%d+)')
  local bm, bs = string.match(b, '(%d+)-(%d+)')
  if am ~= bm then return tonumber(am) < tonumber(bm) end
  return tonumber(as) < tonumber(bs)
end
local out = {}
for _, e in ipairs(q) do
  if pending[e[1]] then out[#out + 1] = 'pending ' .. e[1]
  elseif less(last, e[1]) then out[#out + 1] = 'undelivered ' .. e[1] end
end
local function stream(key, place)
  for _, e in ipairs(redis.call('XRANGE', key, '-', '+')) do
    local oid = e[1]
    for i = 1, #e[2], 2 do if e[2][i] == 'oid' then oid = e[2][i + 1] end end
    out[#out + 1] = place .. ' ' .. oid
  end
end
stream(KEYS[2], 'retry')
stream(KEYS[3], 'dead')
for _, m in ipairs(redis.call('ZRANGE', KEYS[4], 0, -1)) do
  out[#out + 1] = 'delayed ' .. string.match(m, '^%Z+')
end
return out`
	reply := r.ask("EVAL", script, "4", r.keys.Queue, r.keys.Retry, r.keys.DLQ, r.keys.Backoff)
	list, err := reply.AsStrSlice()
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string][]string{}
	for _, item := range list {
		place, id, _ := strings.Cut(item, " ")
		out[id] = append(out[id], place)
	}
	return out
}

// settled waits until every message is finished or dead, and returns the dead letters.
func (r *leaseRig) settled() []leaseEntry {
	r.t.Helper()
	redistest.WaitFor(r.t, leasePatience, "every message finished or dead", func() bool {
		for _, at := range r.places() {
			if !slices.Equal(at, []string{"dead"}) {
				return false
			}
		}
		return true
	})
	return r.dead()
}

// wantLeaseFields compares what an entry says, but for the fields named in except.
func wantLeaseFields(t *testing.T, e leaseEntry, want map[string]string, except ...string) {
	t.Helper()
	got := maps.Clone(e.Fields)
	for _, name := range except {
		if _, ok := got[name]; !ok {
			t.Errorf("entry %s lacks the field %q", e.ID, name)
		}
		delete(got, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entry %s (-want +got):\n%s", e.ID, diff)
	}
}

// leaseRuns records the runs of handlers.
type leaseRuns struct {
	mu   sync.Mutex
	runs map[string][]xstreamq.Delivery
}

// add notes a run and returns how many of that body there have been.
func (l *leaseRuns) add(m *xstreamq.Message[string]) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs = map[string][]xstreamq.Delivery{}
	}
	l.runs[m.Body] = append(l.runs[m.Body], m.Delivery)
	return len(l.runs[m.Body])
}

// of returns the runs of a body.
func (l *leaseRuns) of(body string) []xstreamq.Delivery {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.runs[body])
}

// bodies is how many different bodies ran.
func (l *leaseRuns) bodies() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.runs)
}

// leaseTally adds up what an Observer is told: "settled acked", "settled dead failed", "handled retried", "swept recovered" ...
type leaseTally struct {
	mu sync.Mutex
	n  map[string]int
}

func (l *leaseTally) add(what string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == nil {
		l.n = map[string]int{}
	}
	if n != 0 {
		l.n[strings.TrimSpace(what)] += n
	}
}

func (l *leaseTally) of(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n[what]
}

// all returns every sum whose name begins with one of the words.
func (l *leaseTally) all(words ...string) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]int{}
	for what, n := range l.n {
		first, _, _ := strings.Cut(what, " ")
		if slices.Contains(words, first) {
			out[what] = n
		}
	}
	return out
}

func (l *leaseTally) observer() xstreamq.Observer {
	return xstreamq.Observer{
		Published: func(queue string, n int, err error) { l.add(fmt.Sprintf("published %s", queue), n) },
		Handled:   func(h xstreamq.Handled) { l.add("handled "+string(h.Outcome), 1) },
		Settled:   func(s xstreamq.Settled) { l.add("settled "+string(s.Outcome)+" "+string(s.Reason), s.Count) },
		Swept: func(s xstreamq.Swept) {
			l.add("swept recovered", s.Recovered)
			l.add("swept released", s.Released)
			for _, reason := range s.Dead {
				l.add("swept dead "+string(reason), 1)
			}
		},
		Promoted: func(_, _ string, queued, retried int) {
			l.add("promoted queued", queued)
			l.add("promoted retried", retried)
		},
	}
}

// leaseBodies returns n bodies "<word> 0", "<word> 1" ...
func leaseBodies(word string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = word + " " + strconv.Itoa(i)
	}
	return out
}

// leaseTake receives from a channel, but waits no longer than for anything else.
func leaseTake[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(leasePatience):
		t.Fatalf("waited %v in vain for: %s", leasePatience, what)
		panic("unreachable")
	}
}
