package leasemodel

// Budgets are what a message may spend.
type Budgets struct{ Retries, Losses uint8 }

// Step is one command that settles a delivery. It returns whether the delivery goes on to the next one.
type Step func(s *State, b Budgets, by Owner, d *Delivery) (more bool)

// Scripts are the commands that move a message: those of the engine, or mistaken ones. Each is atomic.
type Scripts struct {
	// Ack writes a success: XACK, and lua/ack.lua.
	Ack func(s *State, d *Delivery)
	// Fail writes a failure: lua/fail.lua. Several steps are several commands.
	Fail []Step
	// Release gives a delivery back at once: lua/release.lua.
	Release func(s *State, by Owner, place Place, id uint8)
	// Extend renews a lease, or marks it as not begun, and says whether it is still held: lua/extend.lua.
	Extend func(s *State, by Owner, place Place, id uint8, unstarted bool) bool
	// Reclaim takes over a pending entry: lua/reclaim.lua.
	Reclaim func(s *State, b Budgets, e *Entry)
	// Bound says up to which id, exclusive, the queue may be trimmed: lua/compact.lua.
	Bound func(r *Redis) uint8
}

// Engine returns the scripts of the engine.
func Engine() Scripts {
	return Scripts{Ack: ack, Fail: []Step{fail}, Release: release, Extend: extend, Reclaim: reclaim, Bound: bound}
}

// read gives an undelivered entry to a consumer: XREADGROUP >.
func read(e *Entry, by Owner) { e.Delivered, e.Owner, e.Expired, e.Charged = true, by, false, true }

// ack ends a message by the id of its entry, whoever holds it.
func ack(s *State, d *Delivery) {
	e := s.find(d.Place, d.ID)
	if e == nil {
		return
	}
	if e.Owner != Nobody || e.Place == Retry {
		s.Ended[e.Msg] = true
	}
	finish(e)
}

// finish ends an entry where it was: finish in lua/include/entry.lua. On the queue it stays until it is trimmed.
func finish(e *Entry) {
	if e.Place == Retry || !e.Stored {
		*e = Entry{}
		return
	}
	e.Owner, e.Expired, e.Charged = Nobody, false, false
	e.RC, e.LC = 0, 0
}

// fail spends a retry, if the consumer still holds the entry.
func fail(s *State, b Budgets, by Owner, d *Delivery) bool {
	e := s.find(d.Place, d.ID)
	if e == nil || e.Owner != by {
		return false
	}
	moved := *e
	finish(e)
	s.add(failed(moved, b))
	return false
}

// failed is where a message goes after a failure.
func failed(e Entry, b Budgets) Entry {
	next := Entry{Place: Backoff, Msg: e.Msg, RC: e.RC + 1, LC: e.LC, Stored: true}
	if next.RC > b.Retries {
		next.Place = Dead
	}
	return next
}

// postpone is lua/fail.lua with nothing to spend: a release with a delay.
func postpone(s *State, by Owner, d *Delivery) {
	e := s.find(d.Place, d.ID)
	if e == nil || e.Owner != by {
		return
	}
	moved := *e
	finish(e)
	s.add(Entry{Place: Backoff, Msg: moved.Msg, RC: moved.RC, LC: moved.LC, Stored: true})
}

// release gives a delivery back at once, if the consumer still holds it.
func release(s *State, by Owner, place Place, id uint8) {
	e := s.find(place, id)
	if e == nil || e.Owner != by {
		return
	}
	moved := *e
	finish(e)
	s.add(Entry{Place: Retry, Msg: moved.Msg, RC: moved.RC, LC: moved.LC, Stored: true})
}

// extend renews a lease while its consumer holds it.
func extend(s *State, by Owner, place Place, id uint8, unstarted bool) bool {
	e := s.find(place, id)
	if e == nil || e.Owner != by {
		return false
	}
	e.Expired = false
	if unstarted {
		e.Charged = false
	}
	return true
}

// reclaim moves an entry whose lease has run out.
func reclaim(s *State, b Budgets, e *Entry) {
	if !e.Expired {
		return
	}
	moved := *e
	finish(e)
	s.add(lost(moved, b))
}

// lost is where a message goes after its lease has run out. A delivery count of 0 marks a release.
func lost(e Entry, b Budgets) Entry {
	next := Entry{Place: Retry, Msg: e.Msg, RC: e.RC, LC: e.LC, Stored: true}
	if !e.Charged {
		return next
	}
	next.LC++
	switch {
	case next.LC > b.Losses:
		next.Place = Dead
	case next.LC > 1:
		next.Place = Backoff
	}
	return next
}

// promote moves a message whose wait is over to the retry stream: lua/promote.lua.
func promote(s *State, e *Entry) {
	moved := *e
	*e = Entry{}
	s.add(Entry{Place: Retry, Msg: moved.Msg, RC: moved.RC, LC: moved.LC, Stored: true})
}

// redrive gives a dead letter to its group again, with fresh budgets: lua/redrive.lua.
func redrive(s *State, e *Entry) {
	moved := *e
	*e = Entry{}
	s.add(Entry{Place: Retry, Msg: moved.Msg, Stored: true})
}

// bound is the oldest pending entry of the queue, or the last delivered one.
func bound(r *Redis) uint8 {
	var bound uint8
	for _, e := range r.Entries {
		if e.Place == Queue && e.Delivered {
			bound = max(bound, e.ID)
		}
	}
	for _, e := range r.Entries {
		if e.Place == Queue && e.Owner != Nobody {
			bound = min(bound, e.ID)
		}
	}
	return bound
}

// compact trims the queue below a bound. A pending row outlives its entry.
func compact(r *Redis, bound uint8) {
	for i := range r.Entries {
		e := &r.Entries[i]
		switch {
		case e.Place != Queue || e.ID >= bound:
		case e.Owner == Nobody:
			*e = Entry{}
		default:
			e.Stored = false
		}
	}
}

// loseGroup is a consumer group that was destroyed, and created again from the beginning: what is in the stream is undelivered.
func loseGroup(s *State, place Place) {
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Place == place {
			e.Delivered, e.Owner, e.Expired, e.Charged = false, Nobody, false, false
		}
	}
	for i := range s.Workers {
		for j := range s.Workers[i].Held {
			if d := &s.Workers[i].Held[j]; d.Phase != None && d.Place == place {
				d.Excused = true
			}
		}
	}
}

// groupCanBeLost says whether nothing finished would come again.
func groupCanBeLost(r *Redis, place Place) bool {
	for _, e := range r.Entries {
		if e.Place == place && (!e.Stored || e.Delivered && e.Owner == Nobody) {
			return false
		}
	}
	return true
}
