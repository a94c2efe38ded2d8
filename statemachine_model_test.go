package xstreamq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// Bounds of the messages of the state machine.
const (
	smMaxRetries = 2
	smMaxLost    = 2
)

// smEntry is one message in one place, in the model.
type smEntry struct {
	id     string   // of its entry; empty until Redis was asked
	fields []string // the publisher's: name, value ...
	oid    string   // empty: the id of its entry
	rc, lc int
	err    string
	tail   string // of a dead letter: reason, from, by; of a member that met its like: from
	due    bool   // of a member

	gone    bool // deleted, but maybe pending
	owner   string
	expired bool
	charged bool
}

func (e *smEntry) original() string {
	if e.oid == "" {
		return e.id
	}
	return e.oid
}

func (e *smEntry) hasBody() bool {
	for i := 0; i < len(e.fields); i += 2 {
		if e.fields[i] == wire.Body {
			return true
		}
	}
	return false
}

// text is what an entry says, whatever its id is.
func (e *smEntry) text(id string) string {
	oid := e.oid
	if oid == "" {
		oid = id
	}
	return fmt.Sprintf("%.60q oid=%s rc=%d lc=%d err=%q %s", e.fields, oid, e.rc, e.lc, e.err, e.tail)
}

// moved is a copy of an entry on its way to another place.
func (e *smEntry) moved() *smEntry {
	return &smEntry{fields: e.fields, oid: e.original(), rc: e.rc, lc: e.lc, err: e.err}
}

// smStream is a stream with one group.
type smStream struct {
	name    string
	ours    bool
	entries []*smEntry
	last    wire.ID // delivered
}

func smID(id string) wire.ID {
	parsed, _ := wire.ParseID(id)
	return parsed
}

func (s *smStream) find(id string) *smEntry {
	for _, e := range s.entries {
		if e.id == id {
			return e
		}
	}
	return nil
}

// tidy drops what is neither there nor pending.
func (s *smStream) tidy() {
	s.entries = slices.DeleteFunc(s.entries, func(e *smEntry) bool { return e.gone && e.owner == "" })
}

func (s *smStream) undelivered(e *smEntry) bool { return !e.gone && s.last.Less(smID(e.id)) }

// finish ends an entry where it was.
func (s *smStream) finish(e *smEntry) {
	e.owner, e.expired = "", false
	e.gone = e.gone || s.ours
	s.tidy()
}

// smModel is what Redis should hold.
type smModel struct {
	queue, retry  smStream
	dead          []*smEntry
	delayed, wait []*smEntry
	done          map[string]bool
}

func newSMModel() *smModel {
	return &smModel{queue: smStream{name: "queue"}, retry: smStream{name: "retry", ours: true}, done: map[string]bool{}}
}

func (m *smModel) lane(retry bool) *smStream {
	if retry {
		return &m.retry
	}
	return &m.queue
}

// read is XREADGROUP: it returns the ids that it should bring.
func (m *smModel) read(s *smStream, consumer string, n int) []string {
	var ids []string
	for _, e := range s.entries {
		if len(ids) < n && s.undelivered(e) {
			e.owner, e.expired, e.charged = consumer, false, true
			ids = append(ids, e.id)
		}
	}
	if len(ids) > 0 {
		s.last = smID(ids[len(ids)-1])
	}
	return ids
}

// ack returns whether a row was ended.
func (m *smModel) ack(s *smStream, id string) bool {
	e := s.find(id)
	if e == nil {
		return false
	}
	held := e.owner != ""
	s.finish(e)
	return held
}

// fail is a failure of a delivery. packed says that the worker also sends the message as it was read.
func (m *smModel) fail(s *smStream, consumer, id string, a failArgs) int64 {
	e := s.find(id)
	if e == nil || e.owner != consumer {
		return failGone
	}
	if e.gone && a.Held == "" {
		return failMissing
	}
	next := e.moved()
	next.rc += int(a.Spend)
	if a.Err != "" {
		next.err = a.Err
	}
	reason := a.Reason
	if reason == "" && a.Budget >= 0 && next.rc > int(a.Budget) {
		reason = string(Failed)
	}
	s.finish(e)
	if reason == "" {
		m.backoff(next, e.id, a.Delay == 0)
		return failWaiting
	}
	m.bury(next, reason, e.id, consumer)
	return failDead
}

func (m *smModel) bury(e *smEntry, reason, from, by string) {
	e.tail = fmt.Sprintf("reason=%s from=%s by=%s", reason, from, by)
	m.dead = append(m.dead, e)
}

// backoff adds a member. Two of the same content are told apart by where they came from.
func (m *smModel) backoff(e *smEntry, from string, due bool) {
	e.due = due
	for _, other := range m.wait {
		if other.text("") == e.text("") {
			e.tail = "from=" + from
			break
		}
	}
	m.wait = append(m.wait, e)
}

// release returns whether the consumer held it.
func (m *smModel) release(s *smStream, consumer, id string) bool {
	e := s.find(id)
	if e == nil || e.owner != consumer || e.gone {
		return false
	}
	s.finish(e)
	m.retry.entries = append(m.retry.entries, e.moved())
	return true
}

func (m *smModel) extend(s *smStream, consumer, id, mode string) int64 {
	e := s.find(id)
	switch {
	case e == nil || e.owner != consumer:
		return leaseLost
	case mode == modeCheck:
		return leaseHeld
	case e.gone:
		return leaseOfNothing
	case mode == modeUnstarted:
		e.charged = false
	case mode == modeStarted:
		e.charged = true
	}
	e.expired = false
	return leaseHeld
}

// reclaim takes over all whose lease has run out.
func (m *smModel) reclaim(s *smStream) {
	for _, e := range slices.Clone(s.entries) {
		if e.owner == "" || !e.expired {
			continue
		}
		owner, next, deleted := e.owner, e.moved(), e.gone
		s.finish(e)
		switch {
		case deleted:
			m.bury(&smEntry{oid: e.id}, string(BodyLost), e.id, owner)
		case !next.hasBody():
			m.bury(next, string(NoBody), e.id, owner)
		case !e.charged:
			m.retry.entries = append(m.retry.entries, next)
		default:
			m.lose(next, e.id, owner)
		}
	}
}

func (m *smModel) lose(e *smEntry, from, owner string) {
	e.lc++
	e.err = "lease lost by " + owner
	switch {
	case e.lc > smMaxLost:
		m.bury(e, string(LostLease), from, owner)
	case e.lc == 1:
		m.retry.entries = append(m.retry.entries, e)
	default:
		m.backoff(e, from, false)
	}
}

// promote moves what is due.
func (m *smModel) promote() (queued, retried int) {
	take := func(from []*smEntry, to *smStream) (left []*smEntry, n int) {
		for _, e := range from {
			if !e.due {
				left = append(left, e)
				continue
			}
			n++
			e.due = false
			to.entries = append(to.entries, e)
		}
		return left, n
	}
	m.delayed, queued = take(m.delayed, &m.queue)
	m.wait, retried = take(m.wait, &m.retry)
	return queued, retried
}

// redrive returns whether the dead letter left.
func (m *smModel) redrive(id string, toQueue bool) bool {
	i := slices.IndexFunc(m.dead, func(e *smEntry) bool { return e.id == id })
	if i < 0 || !m.dead[i].hasBody() {
		return false
	}
	e := m.dead[i]
	m.dead = slices.Delete(m.dead, i, i+1)
	if toQueue {
		m.queue.entries = append(m.queue.entries, &smEntry{fields: e.fields})
		return true
	}
	delete(m.done, e.original())
	m.retry.entries = append(m.retry.entries, &smEntry{fields: e.fields, oid: e.original()})
	return true
}

// compactable says whether the queue may be trimmed of an entry.
func (m *smModel) compactable(id string) bool {
	bound := m.queue.last
	for _, e := range m.queue.entries {
		if e.owner != "" && smID(e.id).Less(bound) {
			bound = smID(e.id)
		}
	}
	return smID(id).Less(bound)
}

// loseGroup destroys a group and creates it again from the beginning.
func (m *smModel) loseGroup(s *smStream) {
	for _, e := range s.entries {
		e.owner, e.expired = "", false
	}
	s.last = wire.ID{}
	s.tidy()
}

// lines is the state as text.
func (m *smModel) lines() []string {
	var out []string
	for _, s := range []*smStream{&m.queue, &m.retry} {
		for _, e := range s.entries {
			out = append(out, e.line(s.name, s.undelivered(e)))
		}
		out = append(out, s.name+" is read up to "+s.last.String())
	}
	for _, e := range m.dead {
		out = append(out, "dead "+e.id+" "+e.text(e.id))
	}
	for name, set := range map[string][]*smEntry{"delayed": m.delayed, "backoff": m.wait} {
		for _, e := range set {
			out = append(out, fmt.Sprintf("%s %s due=%v", name, e.text(""), e.due))
		}
	}
	for id := range m.done {
		out = append(out, "done "+id)
	}
	slices.Sort(out)
	return out
}

// line is an entry of a stream as text. Of one that is gone only the row can be seen.
func (e *smEntry) line(stream string, undelivered bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", stream, e.id)
	switch {
	case e.gone:
		b.WriteString(" gone")
	default:
		b.WriteString(" " + e.text(e.id))
	}
	switch {
	case e.owner != "":
		fmt.Fprintf(&b, " held by %s, expired=%v charged=%v", e.owner, e.expired, e.charged)
	case undelivered:
		b.WriteString(" undelivered")
	}
	return b.String()
}
