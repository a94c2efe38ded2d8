package xstreamq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// smMachine does the same to Redis, by the scripts and the public calls, and to the model.
type smMachine struct {
	ctx    context.Context
	name   string // of the queue
	redis  rueidis.Client
	client *Client
	queue  *Queue[[]byte]
	keys   keys.Set // of group g of queue q
	model  *smModel

	published int
	lives     int
	workers   []*smWorker
	// The ledger: what may be nowhere and why, and what may be in two places since a group was lost.
	ended map[string]string
	again bool

	seen map[string]int // what came of the actions, in all runs
}

// smWorker is a consumer, and what it believes to hold.
type smWorker struct {
	name string
	held []smDelivery
}

type smDelivery struct {
	retry bool
	smRaw
}

func newSMMachine(ctx context.Context, t *rapid.T, rc rueidis.Client, c *Client, queue string, seen map[string]int) *smMachine {
	m := &smMachine{
		ctx: ctx, name: queue, keys: keys.ForGroup(c.cfg.KeyPrefix, queue, "g"),
		model: newSMModel(), ended: map[string]string{}, seen: seen,
	}
	m.use(t, rc, c)
	m.create(t, false)
	m.create(t, true)
	m.workers = []*smWorker{{name: m.life()}, {name: m.life()}}
	return m
}

// use has the machine go on with a client.
func (m *smMachine) use(t *rapid.T, rc rueidis.Client, c *Client) {
	var err error
	m.redis, m.client = rc, c
	if m.queue, err = NewQueue(c, m.name, WithCodec[[]byte](Bytes{})); err != nil {
		t.Fatal(err)
	}
}

// life is the name of a worker that starts: nobody was ever called so.
func (m *smMachine) life() string {
	m.lives++
	return fmt.Sprintf("w%d~%d", m.lives, smLease)
}

func (m *smMachine) lane(retry bool) (keys.Set, string) {
	if retry {
		return m.keys.OnRetry("g"), keys.RetryGroup("g")
	}
	return m.keys, "g"
}

func (m *smMachine) do(t *rapid.T, words ...string) rueidis.RedisMessage {
	reply, err := m.redis.Do(m.ctx, m.redis.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%.200q: %v", words, err)
	}
	return reply
}

func (m *smMachine) create(t *rapid.T, retry bool) {
	k, group := m.lane(retry)
	if err := runCreate(m.ctx, m.redis, k, createArgs{Group: group, From: "0"}).Error(); err != nil {
		t.Fatal(err)
	}
}

// saw notes what a script answered.
func (m *smMachine) saw(what string, answers ...int64) {
	for _, n := range answers {
		m.seen[what+" "+strconv.FormatInt(n, 10)]++
	}
}

func smSame(t *rapid.T, what string, model, engine any) {
	if diff := cmp.Diff(model, engine); diff != "" {
		t.Fatalf("%s (-model +engine):\n%s", what, diff)
	}
}

// number is what the publisher calls a message.
func (m *smMachine) number() string {
	m.published++
	return strconv.Itoa(m.published)
}

// smBody is sometimes so large that a node of the stream holds few entries: then compaction finds whole nodes.
func smBody(t *rapid.T) []byte {
	return []byte(strings.Repeat("x", rapid.SampledFrom([]int{0, 3, 1500, 3000}).Draw(t, "body")))
}

func (m *smMachine) publish(t *rapid.T) {
	for range rapid.IntRange(1, 3).Draw(t, "messages") {
		m.publishOne(t)
	}
}

func (m *smMachine) publishOne(t *rapid.T) {
	n, body := m.number(), smBody(t)
	e := &smEntry{fields: []string{"body", string(body), "h:n", n}}
	options := []PublishOption{WithHeader("n", n)}
	if rapid.IntRange(0, 2).Draw(t, "delayed") == 0 {
		options = append(options, WithDelay(time.Hour))
		e.oid = m.send(t, body, options)
		m.model.delayed = append(m.model.delayed, e)
		return
	}
	e.id = m.send(t, body, options)
	m.model.queue.entries = append(m.model.queue.entries, e)
}

func (m *smMachine) send(t *rapid.T, body []byte, options []PublishOption) string {
	id, err := m.queue.Publish(m.ctx, body, options...)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// foreign is what another program adds: reserved names, fields of its own, maybe no body, maybe the id of a delayed message.
func (m *smMachine) foreign(t *rapid.T) {
	n := m.number()
	e := &smEntry{}
	flat := []string{"rc", "7", "lc", "9", "reason", "failed"}
	if rapid.IntRange(0, 3).Draw(t, "bodiless") > 0 {
		e.fields = append(e.fields, "body", string(smBody(t)))
	}
	e.fields = append(e.fields, "h:n", n, "h:n2", "x", "own", "", "own", n)
	flat = append(flat, e.fields...)
	switch rapid.IntRange(0, 4).Draw(t, "oid") {
	case 0:
		e.oid = "d1-ff"
		flat = append(flat, "oid", e.oid, "pub", "5")
	case 1:
		flat = append(flat, "oid", "1-1")
	}
	id := m.do(t, append([]string{"XADD", m.keys.Queue, "*"}, flat...)...)
	e.id, _ = id.ToString()
	m.model.queue.entries = append(m.model.queue.entries, e)
}

func (m *smMachine) worker(t *rapid.T) *smWorker {
	return rapid.SampledFrom(m.workers).Draw(t, "worker")
}

func (m *smMachine) read(t *rapid.T) {
	w, retry, n := m.worker(t), rapid.Bool().Draw(t, "retry"), rapid.IntRange(1, 5).Draw(t, "count")
	if !slices.ContainsFunc(m.model.lane(retry).entries, m.model.lane(retry).undelivered) {
		retry = !retry // most likely there is more to see
	}
	k, group := m.lane(retry)
	reply := m.do(t, "XREADGROUP", "GROUP", group, w.name, "COUNT", strconv.Itoa(n), "STREAMS", k.Source, ">")
	entries, err := streamEntries(reply)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	answered := rapid.IntRange(0, 9).Draw(t, "reply lost") > 0
	for i := range entries {
		id, fields, err := splitEntry(entries[i])
		if err != nil {
			t.Fatal(err)
		}
		d := smDelivery{retry: retry, smRaw: smRaw{id: id}}
		for _, f := range fields {
			word, _ := f.ToString()
			d.fields = append(d.fields, word)
		}
		ids = append(ids, id)
		if answered {
			w.held = append(w.held, d)
		}
	}
	m.seen["read"] += len(ids)
	smSame(t, "read", m.model.read(m.model.lane(retry), w.name, n), ids)
}

// take chooses a delivery. Now and then it stays in the worker's memory: the reply was lost, and it is settled again.
func (m *smMachine) take(t *rapid.T) (*smWorker, smDelivery) {
	w := m.worker(t)
	if len(w.held) == 0 {
		w = m.workers[0]
	}
	if len(w.held) == 0 {
		w = m.workers[1]
	}
	if len(w.held) == 0 {
		t.Skip("nothing is held")
	}
	i := rapid.IntRange(0, len(w.held)-1).Draw(t, "delivery")
	d := w.held[i]
	if rapid.IntRange(0, 3).Draw(t, "reply lost") > 0 {
		w.held = slices.Delete(w.held, i, i+1)
	}
	return w, d
}

func (m *smMachine) ack(t *rapid.T) {
	_, d := m.take(t)
	k, group := m.lane(d.retry)
	oid := smOpen(d.id, d.fields, d.retry).oid
	e := m.model.lane(d.retry).find(d.id)
	ends := e != nil && (e.owner != "" || d.retry)
	var ended int64
	if keep := rapid.Bool().Draw(t, "dedupe"); keep || d.retry {
		a := ackArgs{Group: group, Ours: d.retry, IDs: []string{d.id, oid}}
		if keep {
			a.Keep = smLease
			m.model.done[oid] = true
		}
		var err error
		if ended, err = runAck(m.ctx, m.redis, k, a).AsInt64(); err != nil {
			t.Fatal(err)
		}
	} else {
		n := m.do(t, "XACK", k.Source, group, d.id)
		ended, _ = n.AsInt64()
	}
	smSame(t, "ack", m.model.ack(m.model.lane(d.retry), d.id), ended == 1)
	m.saw("ack", ended)
	if ends {
		m.end(d.fields, "acked")
	}
}

// end notes in the ledger that a message may be nowhere.
func (m *smMachine) end(fields []string, why string) {
	for i := 0; i < len(fields); i += 2 {
		if fields[i] == "h:n" {
			m.ended[fields[i+1]] = why
		}
	}
}

func (m *smMachine) fail(t *rapid.T) {
	w, d := m.take(t)
	k, group := m.lane(d.retry)
	a := failArgs{Group: group, Consumer: w.name, ID: d.id, Ours: d.retry, Budget: -1}
	switch rapid.SampledFrom([]string{"fails", "fails", "releases", "rejects", "undecodable"}).Draw(t, "verdict") {
	case "fails":
		a.Spend, a.Budget, a.Err = 1, smMaxRetries, "failed in "+w.name
	case "rejects":
		a.Spend, a.Reason, a.Err = 1, string(Rejected), "rejected"
	case "undecodable":
		a.Reason = string(Undecodable)
	}
	if rapid.Bool().Draw(t, "later") {
		a.Delay = 3_600_000
	}
	for {
		reply, err := runFail(m.ctx, m.redis, k, a).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		status, _ := reply[0].AsInt64()
		smSame(t, "fail", m.model.fail(m.model.lane(d.retry), w.name, d.id, a), status)
		m.seen["fail "+[]string{"gone", "waiting", "dead", "missing"}[status]]++
		if status != failMissing {
			return
		}
		a.Held = wire.Pack(d.fields)
	}
}

// crash ends a worker. Its consumer stays in Redis, with what it held.
func (m *smMachine) crash(t *rapid.T) { *m.worker(t) = smWorker{name: m.life()} }

// loseLease lets the leases of one consumer run out. Entries that are gone are left out: XCLAIM would drop their rows.
func (m *smMachine) loseLease(t *rapid.T) {
	var owners []string
	for _, s := range []*smStream{&m.model.queue, &m.model.retry} {
		for _, e := range s.entries {
			if e.owner != "" && !e.gone {
				owners = append(owners, e.owner)
			}
		}
	}
	if len(owners) == 0 {
		t.Skip("nothing is pending")
	}
	owner := rapid.SampledFrom(owners).Draw(t, "owner")
	for _, retry := range []bool{false, true} {
		k, group := m.lane(retry)
		for _, e := range m.model.lane(retry).entries {
			if e.owner == owner && !e.gone && rapid.IntRange(0, 3).Draw(t, "spare") > 0 {
				m.do(t, "XCLAIM", k.Source, group, owner, "0", e.id, "IDLE", strconv.Itoa(2*smLease), "JUSTID")
				e.expired = true
			}
		}
	}
}

// steal is somebody's XCLAIM by hand: another consumer has the row of the same entry now, and its first holder must see that.
func (m *smMachine) steal(t *rapid.T) {
	w, retry := m.worker(t), rapid.Bool().Draw(t, "retry")
	k, group := m.lane(retry)
	for _, e := range m.model.lane(retry).entries {
		if e.owner != "" && !e.gone && rapid.Bool().Draw(t, "this one") {
			m.do(t, "XCLAIM", k.Source, group, w.name, "0", e.id)
			e.owner, e.expired, e.charged = w.name, false, true
		}
	}
}

func (m *smMachine) release(t *rapid.T) {
	w, d := m.take(t)
	k, group := m.lane(d.retry)
	ids := []string{d.id}
	for _, other := range w.held {
		if other.retry == d.retry && other.id != d.id && !slices.Contains(ids, other.id) {
			ids = append(ids, other.id)
		}
	}
	got, err := runRelease(m.ctx, m.redis, k, releaseArgs{Group: group, Consumer: w.name, Ours: d.retry, IDs: ids}).AsIntSlice()
	if err != nil {
		t.Fatal(err)
	}
	var want []int64
	for _, id := range ids {
		if m.model.release(m.model.lane(d.retry), w.name, id) {
			want = append(want, 1)
		} else {
			want = append(want, 0)
		}
	}
	smSame(t, "release", want, got)
	m.saw("release", want...)
}

func (m *smMachine) extend(t *rapid.T) {
	w := m.worker(t)
	mode := rapid.SampledFrom([]string{modeRenew, modeCheck, modeUnstarted, modeStarted}).Draw(t, "mode")
	for _, retry := range []bool{false, true} {
		k, group := m.lane(retry)
		var ids []string
		for _, d := range w.held {
			if d.retry == retry {
				ids = append(ids, d.id)
			}
		}
		if len(ids) == 0 {
			continue
		}
		got, err := runExtend(m.ctx, m.redis, k, extendArgs{Group: group, Consumer: w.name, Mode: mode, IDs: ids}).AsIntSlice()
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for _, id := range ids {
			want = append(want, m.model.extend(m.model.lane(retry), w.name, id, mode))
		}
		smSame(t, "extend "+mode, want, got)
		m.saw("extend", want...)
	}
}
