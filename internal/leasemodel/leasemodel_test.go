package leasemodel

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// P1 to P5, in every state there is.
func TestLeaseProtocol(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		model Model
	}{
		// Small ones first: under -short the rest is left out.
		{"a redrive", Model{Messages: 1, Slots: 1, Budgets: Budgets{Retries: 1, Losses: 1}, Redrives: 1}},
		{"budgets", Model{Messages: 1, Slots: 2, Budgets: Budgets{Retries: 1, Losses: 1}}},
		{"a lost group", Model{Messages: 1, Slots: 2, GroupLosses: 1}},
		{"a lost group and larger budgets", Model{Messages: 1, Slots: 1, Budgets: Budgets{Retries: 1, Losses: 2}, GroupLosses: 1}},
		{"two messages", Model{Messages: 2, Slots: 1}},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if i > 0 && testing.Short() {
				t.Skip("SKIPPED under -short: one of the larger models")
			}
			c.model.Scripts = Engine()
			began := time.Now()
			report, err := Check(c.model)
			t.Logf("%d states, %d transitions, %d steps deep, in %v", report.States, report.Transitions, report.Depth, time.Since(began))
			if err != nil {
				t.Fatal(err)
			}
			if report.States < 40_000 {
				t.Error("the model has lost most of its states")
			}
		})
	}
}

// Each mistake that a lease protocol can make breaks a promise, and the checker shows how.
func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	small := Model{Messages: 1, Slots: 1, Budgets: Budgets{Retries: 1, Losses: 1}}
	withGroupLoss := Model{Messages: 1, Slots: 1, Budgets: Budgets{Retries: 1, Losses: 1}, GroupLosses: 1}
	cases := []struct {
		name    string
		model   Model
		mistake func(s *Scripts)
		broken  string // the promise
		shows   string // what the trace must tell
	}{
		{"XACK before XADD", small, func(s *Scripts) { s.Fail = []Step{takeAway, putThere} }, "P1: m0 is lost", "dies"},
		{"XADD before XACK, in two commands", small, func(s *Scripts) { s.Fail = []Step{copyThere, takeAway} }, "P1: m0 is in two places", "fails"},
		{"a reclaim that looks at no lease", small, func(s *Scripts) { s.Reclaim = reclaimAll }, "P3: m0 was taken from", "a sweep takes over"},
		{"a heartbeat that steals", withGroupLoss, func(s *Scripts) { s.Extend = steal }, "P4: ", "the group is lost"},
		{"a fence by delivery count", withGroupLoss, func(s *Scripts) { s.Fail = []Step{failByCount} }, "P4: ", "the group is lost"},
		{"no fence", small, func(s *Scripts) { s.Fail = []Step{failAgain} }, "P4: ", "fails m0, reply lost"},
		{"an ack by the original id", small, func(s *Scripts) { s.Ack = ackOriginal }, "P2: m0 goes on although", "acks"},
		{"an ack that leaves the retry stream as it is", small, func(s *Scripts) { s.Ack = ackOnly }, "P1: m0 is on the retry stream", "acks"},
		{"a compaction past a pending entry", Model{Messages: 2, Slots: 1}, func(s *Scripts) { s.Bound = lastDelivered }, "P2: m0 was trimmed", "trimmed"},
		{"a release that is charged", small, func(s *Scripts) { s.Release = chargedRelease }, "P5: m0 has lc 1 after 0", "gives back"},
		{"a sweep that charges what was left behind", small, func(s *Scripts) { s.Reclaim = chargeAll }, "P5: m0 has lc 1 after 0", "marks as left behind"},
		{"a sweep that spends retries", small, func(s *Scripts) { s.Reclaim = spendRetry }, "P5: m0 has rc 1 after 0", "a sweep takes over"},
		{"a budget that is one too large", small, func(s *Scripts) { s.Fail = []Step{failGenerously} }, "P5: m0 lives on", "fails"},
		{"a sweep that skips what was left behind", small, func(s *Scripts) { s.Reclaim = skipReleases }, "P1: from here", "marks as left behind"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.model.Scripts = Engine()
			c.mistake(&c.model.Scripts)
			report, err := Check(c.model)
			var v *ViolationError
			if !errors.As(err, &v) {
				t.Fatalf("not found in %d states", report.States)
			}
			t.Logf("after %d states: %v", report.States, v)
			if !strings.HasPrefix(v.Broken, c.broken) || len(v.Trace) < 3 || !strings.Contains(strings.Join(v.Trace, "\n"), c.shows) {
				t.Errorf("want %q by way of %q", c.broken, c.shows)
			}
		})
	}
}

// takeAway ends a message where it was, and leaves the rest to another command.
func takeAway(s *State, _ Budgets, by Owner, d *Delivery) bool {
	e := s.find(d.Place, d.ID)
	if e == nil || e.Owner != by {
		return false
	}
	d.RC, d.LC = e.RC, e.LC
	finish(e)
	return true
}

func putThere(s *State, b Budgets, _ Owner, d *Delivery) bool {
	s.add(failed(Entry{Msg: d.Msg, RC: d.RC, LC: d.LC}, b))
	return false
}

func copyThere(s *State, b Budgets, by Owner, d *Delivery) bool {
	e := s.find(d.Place, d.ID)
	if e == nil || e.Owner != by {
		return false
	}
	s.add(failed(*e, b))
	return true
}

func reclaimAll(s *State, b Budgets, e *Entry) {
	moved := *e
	finish(e)
	s.add(lost(moved, b))
}

// steal is XCLAIM with a min-idle of 0 by somebody who held it once.
func steal(s *State, by Owner, place Place, id uint8, _ bool) bool {
	e := s.find(place, id)
	if e == nil || e.Owner == Nobody {
		return false
	}
	e.Owner, e.Expired = by, false
	return true
}

// failByCount finds the delivery count that it knows, whoever holds the entry: a group that was lost counts from one again.
func failByCount(s *State, b Budgets, _ Owner, d *Delivery) bool {
	e := s.find(d.Place, d.ID)
	if e == nil || e.Owner == Nobody {
		return false
	}
	return fail(s, b, e.Owner, d)
}

func failAgain(s *State, b Budgets, _ Owner, d *Delivery) bool {
	e := s.find(d.Place, d.ID)
	if e == nil {
		return false
	}
	moved := *e
	finish(e)
	s.add(failed(moved, b))
	return false
}

// ackOriginal looks for the entry by the id that the message keeps, which is that of its first entry.
func ackOriginal(s *State, d *Delivery) {
	if d.Place == Queue {
		ack(s, d)
	}
}

func ackOnly(s *State, d *Delivery) {
	e := s.find(d.Place, d.ID)
	if e == nil || e.Owner == Nobody {
		return
	}
	s.Ended[e.Msg] = true
	e.Owner, e.Expired, e.Charged = Nobody, false, false
}

func lastDelivered(r *Redis) uint8 {
	var last uint8
	for _, e := range r.Entries {
		if e.Place == Queue && e.Delivered {
			last = max(last, e.ID)
		}
	}
	return last
}

func chargedRelease(s *State, by Owner, place Place, id uint8) {
	if s.holds(place, id, by) {
		s.find(place, id).LC++
	}
	release(s, by, place, id)
}

func chargeAll(s *State, b Budgets, e *Entry) {
	e.Charged = true
	reclaim(s, b, e)
}

func spendRetry(s *State, b Budgets, e *Entry) {
	if !e.Expired {
		return
	}
	moved := *e
	finish(e)
	moved.RC++
	s.add(lost(moved, b))
}

func failGenerously(s *State, b Budgets, by Owner, d *Delivery) bool {
	b.Retries++
	return fail(s, b, by, d)
}

func skipReleases(s *State, b Budgets, e *Entry) {
	if e.Charged {
		reclaim(s, b, e)
	}
}
