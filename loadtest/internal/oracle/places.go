package oracle

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// place is where a message of a group is.
type place uint8

const (
	undelivered  place = 1 + iota // on the queue, not read yet
	pending                       // on the queue, held by a worker
	onRetry                       // on the retry stream
	retryPending                  // there, and held by a worker
	leftover                      // there, read and acknowledged, but not deleted: nobody will look at it again
	waiting                       // in the group's sorted set
	dead                          // a dead letter
	scheduled                     // in the queue's sorted set, where this test puts nothing
)

func (p place) String() string {
	return [...]string{
		undelivered: "undelivered", pending: "pending", onRetry: "on the retry stream", retryPending: "pending on the retry stream",
		leftover: "left over on the retry stream", waiting: "waiting", dead: "dead", scheduled: "scheduled",
	}[p]
}

// found is a message in a place.
type found struct {
	place  place
	group  int
	seq    int // -1 where the body is not one of this test
	id     journal.ID
	hasOID bool
	fields map[string]string
}

// counter reads a counter that is absent as zero; anything that is no number is -1.
func (f *found) counter(name string) int {
	text, ok := f.fields[name]
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// page is how many entries are read at once.
const page = 1000

// places reads where the messages of a queue are. Nothing may move meanwhile.
type places struct {
	conn  *resp.Conn
	keys  Keys
	visit func(*found)
}

// read visits all places of all groups.
func (p *places) read(groups int) error {
	for g := range groups {
		for _, part := range []func(int) error{p.queue, p.retry, p.delayed, p.dead} {
			if err := part(g); err != nil {
				return fmt.Errorf("read the places of %s: %w", message.Group(g), err)
			}
		}
	}
	return p.members(p.keys.scheduled(), scheduled, 0)
}

// queue visits what is pending on the queue or not delivered yet.
func (p *places) queue(group int) error {
	state, err := p.group(p.keys.stream(), message.Group(group))
	if err != nil {
		return err
	}
	from := "-"
	if state != nil {
		from = "(" + state["last-delivered-id"].Text
		if err := p.pending(p.keys.stream(), message.Group(group), func(id string, e entry) {
			p.visit(newFound(pending, group, id, e, false))
		}); err != nil {
			return err
		}
	}
	return p.entries(p.keys.stream(), from, func(id string, e entry) {
		p.visit(newFound(undelivered, group, id, e, false))
	})
}

// retry visits everything on the retry stream, which holds live messages only.
func (p *places) retry(group int) error {
	name := message.Group(group) + "-retry"
	state, err := p.group(p.keys.retry(group), name)
	if err != nil {
		return err
	}
	held := map[string]bool{}
	var last journal.ID
	if state != nil {
		last, _ = journal.ParseID(state["last-delivered-id"].Text)
		if err := p.pending(p.keys.retry(group), name, func(id string, e entry) {
			held[id] = true
			p.visit(newFound(retryPending, group, id, e, true))
		}); err != nil {
			return err
		}
	}
	return p.entries(p.keys.retry(group), "-", func(id string, e entry) {
		at, _ := journal.ParseID(id)
		switch {
		case held[id]:
		case last.Less(at):
			p.visit(newFound(onRetry, group, id, e, true))
		default:
			p.visit(newFound(leftover, group, id, e, true))
		}
	})
}

func (p *places) delayed(group int) error { return p.members(p.keys.delayed(group), waiting, group) }

func (p *places) dead(group int) error {
	return p.entries(p.keys.dead(group), "-", func(id string, e entry) { p.visit(newFound(dead, group, id, e, true)) })
}

// group returns a consumer group's state, nil when it does not exist.
func (p *places) group(stream, name string) (map[string]resp.Value, error) {
	v, err := p.conn.Do("XINFO", "GROUPS", stream)
	var refused resp.ServerError
	if errors.As(err, &refused) && strings.HasPrefix(string(refused), "ERR no such key") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return groupOf(v, name), nil
}

// entry is the fields of an entry: the first of one name counts. It is nil for one that was deleted.
type entry map[string]string

func entryOf(v resp.Value) entry {
	e := entry{}
	for name, value := range flat(v) {
		e[name] = value.Text
	}
	return e
}

// pending visits the entries that a group holds, with their fields.
func (p *places) pending(stream, name string, visit func(id string, e entry)) error {
	from := "-"
	for {
		rows, err := p.conn.Do("XPENDING", stream, name, from, "+", strconv.Itoa(page))
		if err != nil {
			return err
		}
		var commands [][]string
		for _, row := range rows.Items {
			if len(row.Items) < 1 {
				return unexpected(row)
			}
			id := row.Items[0].Text
			commands = append(commands, []string{"XRANGE", stream, id, id})
			from = "(" + id
		}
		replies, err := pipeline(p.conn, commands)
		if err != nil {
			return err
		}
		for i, reply := range replies {
			var e entry
			if len(reply.Items) == 1 && len(reply.Items[0].Items) == 2 {
				e = entryOf(reply.Items[0].Items[1])
			}
			visit(commands[i][2], e)
		}
		if len(rows.Items) < page {
			return nil
		}
	}
}

// entries visits the entries of a stream.
func (p *places) entries(stream, from string, visit func(id string, e entry)) error {
	for {
		v, err := p.conn.Do("XRANGE", stream, from, "+", "COUNT", strconv.Itoa(page))
		if err != nil {
			return err
		}
		for _, item := range v.Items {
			if len(item.Items) != 2 {
				return unexpected(item)
			}
			visit(item.Items[0].Text, entryOf(item.Items[1]))
			from = "(" + item.Items[0].Text
		}
		if len(v.Items) < page {
			return nil
		}
	}
}

// members visits a sorted set of delayed messages.
func (p *places) members(key string, at place, group int) error {
	for from := 0; ; from += page {
		v, err := p.conn.Do("ZRANGE", key, strconv.Itoa(from), strconv.Itoa(from+page-1))
		if err != nil {
			return err
		}
		for _, m := range v.Items {
			id, packed, _ := strings.Cut(m.Text, "\x00")
			e, ok := unpack(packed)
			if !ok {
				e = nil
			}
			p.visit(newFound(at, group, id, e, true))
		}
		if len(v.Items) < page {
			return nil
		}
	}
}

// unpack reads a packed entry: names and values, each with its length before it.
func unpack(packed string) (entry, bool) {
	var words []string
	for packed != "" {
		length, rest, found := strings.Cut(packed, ":")
		n, err := strconv.Atoi(length)
		if !found || err != nil || n < 0 || n > len(rest) {
			return nil, false
		}
		words, packed = append(words, rest[:n]), rest[n:]
	}
	if len(words)%2 != 0 {
		return nil, false
	}
	e := entry{}
	for i := 0; i < len(words); i += 2 {
		if _, ok := e[words[i]]; !ok {
			e[words[i]] = words[i+1]
		}
	}
	return e, true
}

// newFound reads an entry. moved says that it may have an oid, which then is the message's id.
func newFound(at place, group int, id string, e entry, moved bool) *found {
	f := &found{place: at, group: group, seq: -1, fields: e}
	oid, has := e["oid"]
	if moved && has {
		id, f.hasOID = oid, true
	}
	f.id, _ = journal.ParseID(id)
	if seq, _, ok := message.ParseBody([]byte(e["body"])); ok {
		f.seq = seq
	}
	return f
}
