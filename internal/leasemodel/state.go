package leasemodel

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Sizes of a state. Entries are the messages' entries on the queue, and one copy more of each, two when a mistake doubles it.
const (
	maxMessages = 2
	maxEntries  = 3 * maxMessages
	maxHeld     = 2
	workers     = 2
)

// Place is where an entry is.
type Place uint8

// The places of a message. Undelivered and pending are told apart by the entry's row.
const (
	Nowhere Place = iota
	Queue
	Retry
	Backoff
	Dead
)

// Owner is who holds a pending row: a worker by its number, or a consumer whose process is no more.
type Owner uint8

// Owners that are no worker.
const (
	Nobody Owner = 0
	Gone   Owner = workers + 1
)

// Entry is one entry of a stream, or one member of the sorted set of those that wait.
type Entry struct {
	Place     Place
	ID        uint8 // within its stream; on the queue it is the number of the message
	Msg       uint8
	RC, LC    uint8
	Stored    bool  // it is there; a pending row outlives its entry
	Delivered bool  // the group is past it
	Owner     Owner // of its pending row
	Expired   bool  // its lease has run out
	Charged   bool  // its delivery count is not 0
}

// Phase is what a worker does with a delivery.
type Phase uint8

// The phases of a delivery, and what its worker is about to write.
const (
	None      Phase = iota
	Waiting         // read, no handler yet
	Running         // in its handler
	Acking          // handled
	Failing         // its handler failed
	Releasing       // given back, by way of the backoff
	Returning       // read again while it was held, and dropped: given back
)

// Delivery is one message in a worker.
type Delivery struct {
	Phase  Phase
	Place  Place // the stream that it was read from
	ID     uint8
	Msg    uint8
	Lost   bool  // Redis said that another has it
	Twice  bool  // read again while it was held
	Step   uint8 // of a write that takes several commands, as no script does
	RC, LC uint8 // carried between two such commands

	Excused bool // the checker's: it may have no row, since its lease ran out, its group was lost, or its outcome was written
}

// Mode is what a worker is up to.
type Mode uint8

// The life of a worker.
const (
	Off Mode = iota
	Up
	Stopping
)

// Worker is one process.
type Worker struct {
	Mode Mode
	Held [maxHeld]Delivery
}

// Redis is what the server holds.
type Redis struct{ Entries [maxEntries]Entry }

// State is everything at one moment. It can be compared.
type State struct {
	Redis
	Workers [workers]Worker
	Ended   [maxMessages]bool // a success was written
	// What the counters of a message must be.
	Failures, Losses [maxMessages]uint8
	// How much of what is bounded has happened.
	Redrives, GroupLosses uint8
}

// find returns an entry of a stream.
func (r *Redis) find(place Place, id uint8) *Entry {
	for i := range r.Entries {
		if e := &r.Entries[i]; e.Place == place && e.ID == id {
			return e
		}
	}
	return nil
}

// holds says whether a consumer has the pending row of an entry: holds in lua/include/entry.lua.
func (r *Redis) holds(place Place, id uint8, by Owner) bool {
	e := r.find(place, id)
	return e != nil && e.Owner == by
}

// add appends an entry. Its id is one that nobody knows; canonical makes it a small one.
func (s *State) add(e Entry) {
	if e.ID = 0; e.Place == Retry {
		e.ID = newest
	}
	for i := range s.Entries {
		if s.Entries[i].Place == Nowhere {
			s.Entries[i] = e
			return
		}
	}
	panic("leasemodel: more entries than messages can have")
}

// Ids of the retry stream that are not the number of an entry.
const (
	newest uint8 = 254 // of what was added just now
	past   uint8 = 255 // of what is there no more; such ids never come again, so they need not be told apart
)

// canonical orders what has no order, and numbers the retry stream anew, so that states which differ in nothing are equal.
func (s *State) canonical() {
	slices.SortFunc(s.Entries[:], func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Place-1, b.Place-1), cmp.Compare(a.Msg, b.Msg), cmp.Compare(a.ID, b.ID), cmp.Compare(a.RC, b.RC))
	})
	var number [256]uint8
	for i := range number {
		number[i] = past
	}
	next := uint8(0)
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Place == Retry {
			number[e.ID], e.ID = next, next
			next++
		}
	}
	for i := range s.Workers {
		held := s.Workers[i].Held[:]
		for j := range held {
			if held[j].Place == Retry {
				held[j].ID = number[held[j].ID]
			}
		}
		slices.SortFunc(held, func(a, b Delivery) int { return cmp.Compare(a.rank(), b.rank()) })
	}
}

// rank is a delivery as one number.
func (d *Delivery) rank() uint64 {
	n := uint64(d.Phase)<<24 | uint64(d.Place)<<20 | uint64(d.ID)<<8 | uint64(d.Msg)<<4
	for _, set := range []bool{d.Lost, d.Twice, d.Excused, d.Step > 0} {
		n <<= 1
		if set {
			n |= 1
		}
	}
	return n
}

var (
	placeNames = [...]string{"nowhere", "queue", "retry", "backoff", "dead"}
	phaseNames = [...]string{"", "waiting", "running", "acking", "failing", "releasing", "returning"}
	modeNames  = [...]string{"off", "up", "stopping"}
)

// String shows a state on one line.
func (s *State) String() string {
	var b strings.Builder
	for _, e := range s.Entries {
		if e.Place != Nowhere {
			fmt.Fprintf(&b, "%s ", e)
		}
	}
	for m, ended := range s.Ended {
		if ended {
			fmt.Fprintf(&b, "m%d=ended ", m)
		}
	}
	for i, w := range s.Workers {
		fmt.Fprintf(&b, "| w%d %s", i+1, modeNames[w.Mode])
		for _, d := range w.Held {
			if d.Phase != None {
				fmt.Fprintf(&b, " %s m%d@%s/%d%s", phaseNames[d.Phase], d.Msg, placeNames[d.Place], d.ID, d.marks())
			}
		}
		b.WriteString(" ")
	}
	return b.String()
}

func (e Entry) String() string {
	words := []string{fmt.Sprintf("m%d=%s/%d rc%d lc%d", e.Msg, placeNames[e.Place], e.ID, e.RC, e.LC)}
	switch {
	case e.Place > Retry:
	case e.Owner == Gone:
		words = append(words, "held by the gone")
	case e.Owner != Nobody:
		words = append(words, fmt.Sprintf("held by w%d", e.Owner))
	case e.Delivered:
		words = append(words, "finished")
	}
	words = appendMarks(words, mark{e.Expired, "expired"}, mark{e.Owner != Nobody && !e.Charged, "uncharged"},
		mark{e.Place <= Retry && !e.Stored, "trimmed"})
	return strings.Join(words, " ")
}

func (d *Delivery) marks() string {
	return strings.Join(appendMarks([]string{""}, mark{d.Lost, "lost"}, mark{d.Excused, "excused"}, mark{d.Twice, "twice"},
		mark{d.Step > 0, "half-way"}), ",")
}

type mark struct {
	set  bool
	text string
}

func appendMarks(words []string, marks ...mark) []string {
	for _, m := range marks {
		if m.set {
			words = append(words, m.text)
		}
	}
	return words
}
