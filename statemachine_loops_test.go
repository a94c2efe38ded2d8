package xstreamq

import (
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// reclaim sweeps both streams.
func (m *smMachine) reclaim(t *rapid.T) {
	m.sweep(t, false)
	m.model.adopt(smLook(m.ctx, t, m.redis, m.keys))
	m.sweep(t, true)
}

func (m *smMachine) sweep(t *rapid.T, retry bool) {
	k, group := m.lane(retry)
	clock, err := m.redis.Do(m.ctx, m.redis.B().Arbitrary("TIME").Build()).AsStrSlice()
	if err != nil {
		t.Fatal(err)
	}
	seconds, _ := strconv.ParseInt(clock[0], 10, 64)
	m.do(t, "DEL", k.Lock) // the last sweep's
	reply, err := runReclaim(m.ctx, m.redis, k, reclaimArgs{
		Group: group, Ours: retry, Start: "-", Last: seconds * 1000, Interval: smLease, Lease: smLease, Budget: smMaxLost, Seed: 1,
		Delays: []string{"3600000"},
	}).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	r := replyReader{reply: reply}
	if state := r.int(); state != reclaimSwept {
		t.Fatalf("the sweep came to %d", state)
	}
	_, _ = r.int(), r.string() // the time, and where to go on
	m.seen["reclaim to retry"] += int(r.int())
	m.seen["reclaim to backoff"] += int(r.int())
	m.seen["reclaim released"] += int(r.int())
	m.seen["reclaim held back"] += int(r.int())
	for _, dead := range r.strings() {
		_, reason := splitDead(dead)
		m.seen["reclaim dead "+string(reason)]++
	}
	if problems := r.strings(); r.err != nil || len(problems) > 0 {
		t.Fatalf("reclaim: %v, %v", r.err, problems)
	}
	m.model.reclaim(m.model.lane(retry))
}

func (m *smMachine) promote(t *rapid.T) {
	reply, err := runPromote(m.ctx, m.redis, m.keys, promoteArgs{Page: promotePage}).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	r := replyReader{reply: reply}
	queued, retried := m.model.promote()
	smSame(t, "promote", []int{queued, retried}, []int{int(r.int()), int(r.int())})
	m.seen["promote to queue"] += queued
	m.seen["promote to retry"] += retried
}

// makeDue lets the time of all that waits come.
func (m *smMachine) makeDue(t *rapid.T) {
	for _, set := range []struct {
		key     string
		members []*smEntry
	}{{m.keys.Delayed, m.model.delayed}, {m.keys.Backoff, m.model.wait}} {
		members, err := m.redis.Do(m.ctx, m.redis.B().Arbitrary("ZRANGE", set.key, "0", "-1").Build()).AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range members {
			m.do(t, "ZADD", set.key, "XX", "1", member)
		}
		for _, e := range set.members {
			e.due = true
		}
	}
}

// someDead chooses dead letters, and one that is none.
func (m *smMachine) someDead(t *rapid.T) []string {
	ids := []string{"1-1"}
	for _, e := range m.model.dead {
		if rapid.Bool().Draw(t, "choose") {
			ids = append(ids, e.id)
		}
	}
	return ids
}

func (m *smMachine) redrive(t *rapid.T) {
	ids, toQueue := m.someDead(t), rapid.Bool().Draw(t, "to the queue")
	got, err := m.client.Redrive(m.ctx, m.queue.Name(), "g", ids, RedriveOptions{ToQueue: toQueue})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, id := range ids {
		if m.model.redrive(id, toQueue) {
			want = append(want, id)
		}
	}
	smSame(t, "redrive", want, got.Redriven)
	m.seen["redrive"] += len(want)
	m.seen["redrive refused"] += len(ids) - len(want)
}

func (m *smMachine) purge(t *rapid.T) {
	ids := m.someDead(t)
	got, err := m.client.Purge(m.ctx, m.queue.Name(), "g", ids...)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	m.model.dead = slices.DeleteFunc(m.model.dead, func(e *smEntry) bool {
		if !slices.Contains(ids, e.id) {
			return false
		}
		want++
		m.end(e.fields, "purged")
		return true
	})
	smSame(t, "purge", want, got)
	m.seen["purge"] += want
}

// cancel takes back a delayed message, or tries to with one that is due already.
func (m *smMachine) cancel(t *rapid.T) {
	ids := []string{"d5-ff"}
	for _, e := range m.model.delayed {
		due, _, _ := strings.Cut(e.oid, "-")
		ids = append(ids, e.oid, due+"-0", due+"-ffffffffffffffffff") // also neighbours that nobody published
	}
	id := rapid.SampledFrom(ids).Draw(t, "id")
	got, err := m.client.Cancel(m.ctx, m.queue.Name(), id)
	if err != nil {
		t.Fatal(err)
	}
	want := false
	m.model.delayed = slices.DeleteFunc(m.model.delayed, func(e *smEntry) bool {
		if e.oid != id {
			return false
		}
		want = true
		m.end(e.fields, "cancelled")
		return true
	})
	smSame(t, "cancel", want, got)
}

// compact trims whole nodes, so the model only says what may go.
func (m *smMachine) compact(t *rapid.T) {
	result, err := m.client.Compact(m.ctx, m.queue.Name())
	if err != nil {
		t.Fatal(err)
	}
	found := smLook(m.ctx, t, m.redis, m.keys)
	var finished []*smEntry
	for _, e := range m.model.queue.entries {
		there := found.queue.find(e.id)
		switch {
		case e.gone, there != nil && !there.gone:
		case m.model.compactable(e.id):
			finished = append(finished, e)
		default:
			t.Fatalf("%s was trimmed, and is not finished", e.line("queue", m.model.queue.undelivered(e)))
		}
	}
	for _, e := range finished {
		e.gone = true
	}
	m.model.queue.tidy()
	m.seen["compact"] += len(finished)
	smSame(t, "compact", len(finished), int(result.Trimmed))
}

// rarely keeps what destroys much from leaving nothing to look at.
func rarely(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
		t.Skip("another time")
	}
}

// trim is what others must not do.
func (m *smMachine) trim(t *rapid.T) {
	rarely(t)
	retry := rapid.IntRange(0, 3).Draw(t, "retry") == 0
	s := m.model.lane(retry)
	k, _ := m.lane(retry)
	var there []*smEntry
	for _, e := range s.entries {
		if !e.gone {
			there = append(there, e)
		}
	}
	if len(there) == 0 {
		t.Skip("the stream is empty")
	}
	if rapid.Bool().Draw(t, "XTRIM") {
		n := rapid.IntRange(0, len(there)).Draw(t, "left")
		m.do(t, "XTRIM", k.Source, "MAXLEN", strconv.Itoa(n))
		there = there[:len(there)-n]
	} else {
		there = []*smEntry{rapid.SampledFrom(there).Draw(t, "entry")}
		m.do(t, "XDEL", k.Source, there[0].id)
	}
	for _, e := range there {
		if e.owner != "" || s.undelivered(e) {
			m.end(e.fields, "trimmed")
		}
		e.gone = true
	}
	s.tidy()
}

// loseGroup destroys a group, which is created again from the beginning.
func (m *smMachine) loseGroup(t *rapid.T) {
	rarely(t)
	retry := rapid.Bool().Draw(t, "retry")
	k, group := m.lane(retry)
	m.do(t, "XGROUP", "DESTROY", k.Source, group)
	m.create(t, retry)
	m.model.loseGroup(m.model.lane(retry))
	m.again = m.again || !retry
}

// reap deletes consumers that hold nothing, which changes nothing else.
func (m *smMachine) reap(t *rapid.T) {
	for _, retry := range []bool{false, true} {
		k, group := m.lane(retry)
		var names []string
		for i := range m.lives {
			names = append(names, "w"+strconv.Itoa(i+1)+"~"+strconv.Itoa(smLease))
		}
		if err := runReap(m.ctx, m.redis, k, reapArgs{Group: group, Names: names}).Error(); err != nil {
			t.Fatal(err)
		}
	}
}

// depth is what operators are shown. What is gone while it is pending is left out: it counts as pending until the next sweep.
func (m *smMachine) depth(t *rapid.T) {
	want := Depth{Queue: m.queue.Name(), Group: "g", Delayed: int64(len(m.model.delayed)), Backoff: int64(len(m.model.wait)), Dead: int64(len(m.model.dead))}
	for _, s := range []*smStream{&m.model.queue, &m.model.retry} {
		for _, e := range s.entries {
			switch {
			case e.gone:
				t.Skip("an entry is gone")
			case e.owner != "":
				want.Pending++
			case s.undelivered(e) && s.ours:
				want.Retry++
			case s.undelivered(e):
				want.Backlog++
			}
		}
	}
	want.Length = int64(len(m.model.queue.entries))
	got, err := m.client.Depth(m.ctx, m.queue.Name(), "g")
	if err != nil {
		t.Fatal(err)
	}
	got.Oldest = 0
	smSame(t, "depth", want, got)
}
