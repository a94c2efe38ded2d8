// Package fault says what was done to the processes of a load test, and when.
package fault

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// Kind is the kind of a fault.
type Kind uint8

// Kinds.
const (
	Kill   Kind = 1 + iota // a worker was killed
	Stop                   // a worker stood still for a while
	Outage                 // the server was killed, and came back
	Pause                  // the whole machine stood still, which nobody meant
	Late                   // the server, or who asked it, took longer than it should
)

// Event is one fault.
type Event struct {
	Kind Kind
	// Run is the number of the worker's process; 0 for what befalls no worker alone.
	Run int
	// From is just before it. To is when it was over: the worker was dead or went on, the server took commands.
	From, To time.Time
}

func (k Kind) String() string {
	switch k {
	case Kill:
		return "kill"
	case Stop:
		return "stop"
	case Outage:
		return "outage"
	case Pause:
		return "pause"
	case Late:
		return "late"
	}
	return "unknown fault"
}

// Write writes events as lines of text: from, to, kind and run.
func Write(w io.Writer, events []Event) error {
	const form = "2006-01-02T15:04:05.000000Z07:00"
	for _, e := range events {
		if _, err := fmt.Fprintf(w, "%s %s %s %d\n", e.From.UTC().Format(form), e.To.UTC().Format(form), e.Kind, e.Run); err != nil {
			return fmt.Errorf("write the faults: %w", err)
		}
	}
	return nil
}

// Log finds faults by what they hit.
type Log struct {
	kills   map[int]Event
	stops   map[int][]Event
	outages []Event
	pauses  []Event
	late    []Event
	all     []Event
}

// NewLog arranges events; their order does not matter.
func NewLog(events []Event) *Log {
	l := &Log{kills: map[int]Event{}, stops: map[int][]Event{}, all: events}
	for _, e := range events {
		switch e.Kind {
		case Kill:
			l.kills[e.Run] = e
		case Stop:
			l.stops[e.Run] = append(l.stops[e.Run], e)
		case Outage:
			l.outages = append(l.outages, e)
		case Pause:
			l.pauses = append(l.pauses, e)
		case Late:
			l.late = append(l.late, e)
		}
	}
	return l
}

// Count is how many faults of a kind there were.
func (l *Log) Count(k Kind) int {
	n := 0
	for _, e := range l.all {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// Most is the largest number of faults of a kind that began within a span of that length.
func (l *Log) Most(k Kind, span time.Duration) int {
	var began []time.Time
	for _, e := range l.all {
		if e.Kind == k {
			began = append(began, e.From)
		}
	}
	slices.SortFunc(began, time.Time.Compare)
	most, first := 0, 0
	for last := range began {
		for began[last].Sub(began[first]) > span {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}

// Killed returns the kill of a run, if it was killed.
func (l *Log) Killed(run int) (Event, bool) {
	e, ok := l.kills[run]
	return e, ok
}

// Stops returns when a run stood still.
func (l *Log) Stops(run int) []Event { return l.stops[run] }

// Stopped says whether a run stood still at some time of a span.
func (l *Log) Stopped(run int, from, to time.Time) bool { return overlaps(l.stops[run], from, to) }

// Down says whether the server was down at some time of a span.
func (l *Log) Down(from, to time.Time) bool { return overlaps(l.outages, from, to) }

// Paused says whether the machine stood still at some time of a span.
func (l *Log) Paused(from, to time.Time) bool { return overlaps(l.pauses, from, to) }

// Any says whether there was a fault at all in a span. Lateness is none.
func (l *Log) Any(from, to time.Time) bool {
	for _, e := range l.all {
		if e.Kind != Late && e.overlaps(from, to) {
			return true
		}
	}
	return false
}

// Lateness is how much of a span the server was late.
func (l *Log) Lateness(from, to time.Time) time.Duration { return Within(l.late, from, to) }

// Within is how much of a span events took.
func Within(events []Event, from, to time.Time) time.Duration {
	var sum time.Duration
	for _, e := range events {
		if e.overlaps(from, to) {
			sum += earlier(e.To, to).Sub(later(e.From, from))
		}
	}
	return sum
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (e Event) overlaps(from, to time.Time) bool { return !e.From.After(to) && !e.To.Before(from) }

func overlaps(events []Event, from, to time.Time) bool {
	return slices.ContainsFunc(events, func(e Event) bool { return e.overlaps(from, to) })
}
