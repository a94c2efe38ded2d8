package xstreamq

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// smLease is the lease of every consumer: far longer than a run, so that leases run out when the machine says so.
const smLease = 600_000

// smReal is what Redis holds, in the terms of the model.
type smReal struct {
	queue, retry smStream
	dead         []*smEntry
	delayed      []*smEntry
	wait         []*smEntry
	done         []string
}

// smOpen reads an entry. Of what anybody may write on the queue only the id of a delayed publish is believed.
func smOpen(id string, flat []string, ours bool) *smEntry {
	e := &smEntry{id: id}
	own := map[string]string{}
	for i := 0; i+1 < len(flat); i += 2 {
		switch name, value := flat[i], flat[i+1]; name {
		case wire.Original:
			if ours || wire.Scheduled(value) {
				own[name] = value
			}
		case wire.Publish, wire.At:
		case wire.Failures, wire.Lost, wire.Error, wire.Reason, wire.From, wire.By:
			if ours {
				own[name] = value
			}
		default:
			e.fields = append(e.fields, name, value)
		}
	}
	if e.oid = own[wire.Original]; e.oid == "" {
		e.oid = id
	}
	e.rc, _ = strconv.Atoi(own[wire.Failures])
	e.lc, _ = strconv.Atoi(own[wire.Lost])
	e.err = own[wire.Error]
	switch {
	case own[wire.Reason] != "":
		e.tail = fmt.Sprintf("reason=%s from=%s by=%s", own[wire.Reason], own[wire.From], own[wire.By])
	case own[wire.From] != "":
		e.tail = "from=" + own[wire.From]
	}
	return e
}

// smLook reads all keys of the group.
func smLook(ctx context.Context, t *rapid.T, c rueidis.Client, k keys.Set) *smReal {
	b := c.B()
	replies := c.DoMulti(ctx,
		b.Arbitrary("XRANGE", k.Queue, "-", "+").Build(), b.Arbitrary("XPENDING", k.Queue, "g", "-", "+", "100000").Build(),
		b.Arbitrary("XINFO", "GROUPS", k.Queue).Build(),
		b.Arbitrary("XRANGE", k.Retry, "-", "+").Build(), b.Arbitrary("XPENDING", k.Retry, "g-retry", "-", "+", "100000").Build(),
		b.Arbitrary("XINFO", "GROUPS", k.Retry).Build(),
		b.Arbitrary("XRANGE", k.DLQ, "-", "+").Build(), b.Arbitrary("ZRANGE", k.Delayed, "0", "-1", "WITHSCORES").Build(),
		b.Arbitrary("ZRANGE", k.Backoff, "0", "-1", "WITHSCORES").Build(), b.Arbitrary("ZRANGE", k.Done, "0", "-1").Build(),
		b.Arbitrary("TIME").Build(),
	)
	for i := range replies {
		if err := replies[i].Error(); err != nil {
			t.Fatalf("looking at the keys, command %d: %v", i, err)
		}
	}
	clock, _ := replies[10].AsStrSlice()
	seconds, _ := strconv.ParseFloat(clock[0], 64)
	r := &smReal{
		queue: smStreamOf(t, "queue", false, replies[0:3]), retry: smStreamOf(t, "retry", true, replies[3:6]),
		delayed: smMembers(t, replies[7], (seconds+1)*1000), wait: smMembers(t, replies[8], (seconds+1)*1000),
	}
	dead, _ := replies[6].AsXRange()
	for _, e := range smEntriesOf(t, replies[6]) {
		r.dead = append(r.dead, smOpen(e.id, e.fields, true))
	}
	if len(dead) != len(r.dead) {
		t.Fatalf("%d dead letters read as %d", len(dead), len(r.dead))
	}
	r.done, _ = replies[9].AsStrSlice()
	return r
}

// smEntriesOf reads a reply of XRANGE, fields as they are.
func smEntriesOf(t *rapid.T, reply rueidis.RedisResult) []smRaw {
	list, err := reply.ToArray()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]smRaw, len(list))
	for i := range list {
		id, fields, err := splitEntry(list[i])
		if err != nil {
			t.Fatal(err)
		}
		out[i].id = id
		for _, f := range fields {
			word, _ := f.ToString()
			out[i].fields = append(out[i].fields, word)
		}
	}
	return out
}

// smRaw is an entry as it is read.
type smRaw struct {
	id     string
	fields []string
}

func smStreamOf(t *rapid.T, name string, ours bool, replies []rueidis.RedisResult) smStream {
	s := smStream{name: name, ours: ours}
	for _, e := range smEntriesOf(t, replies[0]) {
		s.entries = append(s.entries, smOpen(e.id, e.fields, ours))
	}
	rows, _ := replies[1].ToArray()
	for i := range rows {
		row, _ := rows[i].ToArray()
		id, _ := row[0].ToString()
		owner, _ := row[1].ToString()
		idle, _ := row[2].AsInt64()
		count, _ := row[3].AsInt64()
		e := s.find(id)
		if e == nil {
			e = &smEntry{id: id, gone: true}
			s.entries = append(s.entries, e)
		}
		e.owner, e.expired, e.charged = owner, idle >= smLease, count > 0
	}
	groups, _ := replies[2].ToArray()
	for i := range groups {
		info, _ := groups[i].AsMap()
		last := info["last-delivered-id"]
		text, _ := last.ToString()
		s.last = smID(text)
	}
	return s
}

func smMembers(t *rapid.T, reply rueidis.RedisResult, now float64) []*smEntry {
	scores, err := reply.AsZScores()
	if err != nil {
		t.Fatal(err)
	}
	var out []*smEntry
	for _, z := range scores {
		id, fields, err := wire.SplitMember(z.Member)
		if err != nil {
			t.Fatal(err)
		}
		e := smOpen(id, fields, true)
		e.due = z.Score <= now
		out = append(out, e)
	}
	return out
}

// lines is the state as text, in the form of the model's.
func (r *smReal) lines() []string {
	m := smModel{queue: r.queue, retry: r.retry, dead: r.dead, delayed: r.delayed, wait: r.wait, done: map[string]bool{}}
	for _, id := range r.done {
		m.done[id] = true
	}
	return m.lines()
}

// adopt gives the entries that the model expects the ids that Redis has chosen for them.
func (m *smModel) adopt(r *smReal) {
	m.queue.entries = smAdopt(m.queue.entries, r.queue.entries)
	m.retry.entries = smAdopt(m.retry.entries, r.retry.entries)
	m.dead = smAdopt(m.dead, r.dead)
}

func smAdopt(model, redis []*smEntry) []*smEntry {
	known := map[string]bool{}
	for _, e := range model {
		known[e.id] = true
	}
	for _, found := range redis {
		if known[found.id] {
			continue
		}
		for _, e := range model {
			if e.id == "" && e.text(found.id) == found.text(found.id) {
				e.id = found.id
				break
			}
		}
	}
	slices.SortStableFunc(model, func(a, b *smEntry) int {
		switch x, y := smID(a.id), smID(b.id); {
		case x.Less(y):
			return -1
		case y.Less(x):
			return 1
		}
		return 0
	})
	return model
}

// where counts the places of each message in Redis, by the number that its publisher gave it. What is finished on the queue is in none.
func (r *smReal) where() map[string]int {
	where := map[string]int{}
	count := func(e *smEntry) {
		for i := 0; i < len(e.fields); i += 2 {
			if e.fields[i] == "h:n" {
				where[e.fields[i+1]]++
			}
		}
	}
	for _, s := range []*smStream{&r.queue, &r.retry} {
		for _, e := range s.entries {
			if !e.gone && (e.owner != "" || s.undelivered(e)) {
				count(e)
			}
			if s.ours && !e.gone && e.owner == "" && !s.undelivered(e) {
				where["left on the retry stream: "+e.id] += 2
			}
		}
	}
	for _, e := range slices.Concat(r.dead, r.delayed, r.wait) {
		count(e)
	}
	return where
}
