package demo

import (
	"maps"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// tally counts: what handlers finished by itself, and from the library's observer what only the library can know.
type tally struct {
	mu     sync.Mutex
	groups map[string]*counts
}

type counts struct {
	handled   map[string]time.Time // by original id, when a handler first succeeded
	retried   int
	recovered int
	released  int
}

func newTally() *tally {
	t := &tally{groups: make(map[string]*counts, len(groups))}
	for _, g := range groups {
		t.groups[g.name] = &counts{handled: map[string]time.Time{}}
	}
	return t
}

// handled notes that a handler succeeded.
func (t *tally) handled(group, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.groups[group]; c.handled[id].IsZero() {
		c.handled[id] = time.Now()
	}
}

// observer returns what a worker's client reports to.
func (t *tally) observer() xstreamq.Observer {
	return xstreamq.Observer{
		Settled: func(s xstreamq.Settled) {
			t.mu.Lock()
			defer t.mu.Unlock()
			switch s.Outcome {
			case xstreamq.Retried:
				t.groups[s.Group].retried += s.Count
			case xstreamq.Released:
				t.groups[s.Group].released += s.Count
			default: // the check at the end reads the others from Redis
			}
		},
		Swept: func(s xstreamq.Swept) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.groups[s.Group].recovered += s.Recovered
			t.groups[s.Group].released += s.Released
		},
	}
}

// of returns a copy of one group's counts.
func (t *tally) of(group string) counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := *t.groups[group]
	c.handled = maps.Clone(c.handled)
	return c
}

// done is how many messages handlers have finished, of all groups together.
func (t *tally) done() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, c := range t.groups {
		n += len(c.handled)
	}
	return n
}

// releases is how many messages were given back, of all groups together.
func (t *tally) releases() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, c := range t.groups {
		n += c.released
	}
	return n
}

// wait is how long after a time the first handler of any group finished a message; 0 when none did.
func (t *tally) wait(id string, since time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var first time.Duration
	for _, c := range t.groups {
		if at := c.handled[id]; !at.IsZero() && (first == 0 || at.Sub(since) < first) {
			first = at.Sub(since)
		}
	}
	return first
}
