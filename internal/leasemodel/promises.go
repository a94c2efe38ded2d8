package leasemodel

import "fmt"

// broken says which promise a state breaks, or nothing.
func (m *Model) broken(s *State) string {
	for msg := range m.Messages {
		if bad := m.misplaced(s, uint8(msg)); bad != "" {
			return bad
		}
	}
	if bad := s.robbed(); bad != "" {
		return bad
	}
	for _, e := range s.Entries {
		if bad := m.miscounted(s, e); bad != "" {
			return bad
		}
	}
	return ""
}

// misplaced is P1 and P2 for one message: it is in exactly one place, or has ended.
func (m *Model) misplaced(s *State, msg uint8) string {
	var places int
	for _, e := range s.Entries {
		if e.Place == Nowhere || e.Msg != msg {
			continue
		}
		switch {
		case e.Place <= Retry && !e.Stored:
			return fmt.Sprintf("P2: m%d was trimmed while it is pending", msg)
		case e.Place == Retry && e.Delivered && e.Owner == Nobody:
			return fmt.Sprintf("P1: m%d is on the retry stream, and nobody will ever read it", msg)
		case e.Place != Queue || !e.Delivered || e.Owner != Nobody:
			places++
		}
	}
	for _, w := range s.Workers {
		for _, d := range w.Held {
			if d.Msg == msg && d.Step > 0 {
				places++ // in the hands of a worker between two commands, if it has taken the message away already
			}
		}
	}
	switch {
	case places > 1:
		return fmt.Sprintf("P1: m%d is in two places", msg)
	case places > 0 && s.Ended[msg]:
		return fmt.Sprintf("P2: m%d comes again after it was ended by a success", msg)
	case places == 0 && !s.Ended[msg]:
		return fmt.Sprintf("P1: m%d is lost", msg)
	}
	return ""
}

// miscounted is P5 for one entry.
func (m *Model) miscounted(s *State, e Entry) string {
	if e.Place == Nowhere || e.Place == Queue && e.Delivered && e.Owner == Nobody {
		return ""
	}
	overFailed, overLost := e.RC > m.Budgets.Retries, e.LC > m.Budgets.Losses
	switch {
	case e.RC != s.Failures[e.Msg]:
		return fmt.Sprintf("P5: m%d has rc %d after %d failures", e.Msg, e.RC, s.Failures[e.Msg])
	case e.LC != s.Losses[e.Msg]:
		return fmt.Sprintf("P5: m%d has lc %d after %d lost leases", e.Msg, e.LC, s.Losses[e.Msg])
	case e.Place == Dead && !overFailed && !overLost:
		return fmt.Sprintf("P5: m%d is dead before a budget is used up", e.Msg)
	case e.Place != Dead && (overFailed || overLost):
		return fmt.Sprintf("P5: m%d lives on with its budget used up", e.Msg)
	}
	return ""
}

// robbed is P3: a worker whose lease never ran out holds its row, unless its own outcome was written, or somebody's success.
func (s *State) robbed() string {
	var runs [maxMessages]Owner
	for i, w := range s.Workers {
		for _, d := range w.Held {
			if d.Phase == None || d.Phase == Returning || d.Excused || d.Step > 0 || s.Ended[d.Msg] {
				continue
			}
			by := Owner(i + 1)
			if !s.holds(d.Place, d.ID, by) {
				return fmt.Sprintf("P3: m%d was taken from w%d, whose lease never ran out", d.Msg, by)
			}
			if d.Phase != Running {
				continue
			}
			if other := runs[d.Msg]; other != Nobody && other != by {
				return fmt.Sprintf("P3: m%d runs in w%d and w%d", d.Msg, other, by)
			}
			runs[d.Msg] = by
		}
	}
	return ""
}

// wrong says which promise a step breaks, or nothing.
func (a *Action) wrong() string {
	switch {
	case a.fenced && a.moved:
		return fmt.Sprintf("P4: w%d changed m%d, which it does not hold any more", a.Worker, a.Msg)
	case a.ends && !a.Next.Ended[a.Msg]:
		return fmt.Sprintf("P2: m%d goes on although w%d, which held it, wrote its success", a.Msg, a.Worker)
	}
	return ""
}

// ended says whether a state is an end: every message was handled, or is a dead letter.
func (m *Model) ended(s *State) bool {
	dead := s.Ended
	for _, e := range s.Entries {
		if e.Place == Dead {
			dead[e.Msg] = true
		}
	}
	for msg := range m.Messages {
		if !dead[msg] {
			return false
		}
	}
	return true
}
