package xstreamq_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// faultDead is what a dead letter says.
type faultDead struct{ body, reason, rc, lc string }

// faultPlaces is where each message of a group is that is not finished, by original id. At most one place is right.
type faultPlaces struct {
	at   map[string][]string
	dead map[string]faultDead
}

func (p *faultPlaces) add(id, place string) { p.at[id] = append(p.at[id], place) }

// twice lists the messages that are in more than one place.
func (p *faultPlaces) twice() (bad []string) {
	for id, at := range p.at {
		if len(at) > 1 {
			bad = append(bad, fmt.Sprintf("%s in %s", id, strings.Join(at, " and ")))
		}
	}
	return bad
}

func (p *faultPlaces) some() string {
	ids := slices.Sorted(maps.Keys(p.at))
	out := fmt.Sprintf("%d messages:", len(ids))
	for _, id := range ids[:min(len(ids), 20)] {
		out += fmt.Sprintf(" %s in %s;", id, strings.Join(p.at[id], " and "))
	}
	return out
}

// places looks at every place of the group in one transaction: the picture is of one moment, also while workers run. A server
// that is full takes no transaction; there the looks only follow each other closely.
func (r *faultRig) places() *faultPlaces {
	r.t.Helper()
	k := r.keys
	read := [][]string{
		{"XINFO", "GROUPS", k.Queue},
		{"XRANGE", k.Queue, "-", "+"},
		{"XPENDING", k.Queue, faultGroup, "-", "+", "1000000"},
		{"XINFO", "GROUPS", k.Retry},
		{"XRANGE", k.Retry, "-", "+"},
		{"XPENDING", k.Retry, keys.RetryGroup(faultGroup), "-", "+", "1000000"},
		{"ZRANGE", k.Delayed, "0", "-1"},
		{"ZRANGE", k.Backoff, "0", "-1"},
		{"XRANGE", k.DLQ, "-", "+"},
	}
	got := r.transaction(read)
	p := &faultPlaces{at: map[string][]string{}, dead: map[string]faultDead{}}
	p.stream(got[0], got[1], got[2], faultGroup, "queue", false)
	p.stream(got[3], got[4], got[5], keys.RetryGroup(faultGroup), "retry", true)
	for i, place := range map[int]string{6: "delayed", 7: "backoff"} {
		members, _ := got[i].AsStrSlice()
		for _, m := range members {
			id, _, _ := strings.Cut(m, "\x00")
			p.add(id, place)
		}
	}
	for _, e := range faultEntries(got[8]) {
		p.add(e.fields["oid"], "dead")
		p.dead[e.fields["oid"]] = faultDead{e.fields["body"], e.fields["reason"], e.fields["rc"], e.fields["lc"]}
	}
	return p
}

// transaction returns the replies of commands that nothing came between. A reply may be an error: a key may be missing.
func (r *faultRig) transaction(commands [][]string) []rueidis.RedisMessage {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), faultPatience)
	defer cancel()
	for {
		replies, err := r.tryTransaction(ctx, commands)
		if err == nil && len(replies) == len(commands) {
			return replies
		}
		if _, answered := rueidis.IsRedisErr(err); answered || err == nil || ctx.Err() != nil {
			r.t.Fatalf("looking at the keys: %d replies, %v", len(replies), err)
		}
		time.Sleep(faultPause) // the connection broke: the server was killed on purpose
	}
}

func (r *faultRig) tryTransaction(ctx context.Context, commands [][]string) (replies []rueidis.RedisMessage, err error) {
	err = r.redis.Dedicated(func(c rueidis.DedicatedClient) error {
		all := rueidis.Commands{c.B().Multi().Build()}
		for _, words := range commands {
			all = append(all, c.B().Arbitrary(words...).Build())
		}
		all = append(all, c.B().Exec().Build())
		results := c.DoMulti(ctx, all...)
		if replies, err = results[len(results)-1].ToArray(); err == nil || !strings.HasPrefix(err.Error(), "EXECABORT") {
			return err
		}
		replies = nil
		for _, words := range commands {
			reply, _ := c.Do(ctx, c.B().Arbitrary(words...).Build()).ToMessage()
			replies = append(replies, reply)
		}
		return nil
	})
	return replies, err
}

// stream adds what a stream holds for a group: entries that are pending, and those after the last one that was delivered.
func (p *faultPlaces) stream(groups, entries, pending rueidis.RedisMessage, group, name string, ours bool) {
	var last wire.ID
	known, _ := groups.ToArray()
	for i := range known {
		if about, _ := known[i].AsMap(); about != nil {
			of := about["name"]
			if s, _ := of.ToString(); s == group {
				delivered := about["last-delivered-id"]
				s, _ = delivered.ToString()
				last, _ = wire.ParseID(s)
			}
		}
	}
	leased := map[string]bool{}
	rows, _ := pending.ToArray()
	for i := range rows {
		if row, _ := rows[i].ToArray(); len(row) > 0 {
			id, _ := row[0].ToString()
			leased[id] = true
		}
	}
	for _, e := range faultEntries(entries) {
		id, _ := wire.ParseID(e.id)
		original := e.id
		if oid := e.fields["oid"]; oid != "" && (ours || strings.HasPrefix(oid, "d")) {
			original = oid
		}
		switch {
		case leased[e.id]:
			p.add(original, name+" (leased)")
		case last.Less(id):
			p.add(original, name)
		case ours:
			p.add(original, name+" (finished, and not deleted)")
		}
		delete(leased, e.id)
	}
	for id := range leased {
		p.add(id, name+" (leased, and its entry gone)")
	}
}

type faultEntry struct {
	id     string
	fields map[string]string
}

func faultEntries(reply rueidis.RedisMessage) []faultEntry {
	list, _ := reply.AsXRange()
	out := make([]faultEntry, len(list))
	for i, e := range list {
		out[i] = faultEntry{e.ID, e.FieldValues}
	}
	return out
}
