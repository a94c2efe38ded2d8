package oracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
)

// cause is why a handler ran again, or why a lease was lost.
type cause uint8

const (
	unexplained cause = iota
	inHandler         // its worker was killed while the handler ran
	afterEnd          // its worker was killed within the window after the handler's end
	lateEnd           // it was killed later, but server or worker were late meanwhile
	stopped           // its worker stood still meanwhile
	outage            // the server was down meanwhile
	outageKill        // the server was down when the handler ended, and its worker was killed before it could tell
	paused            // the whole machine stood still meanwhile
	beforeStart       // a worker that had read it was killed or stood still, or the server was down, before a handler began
)

var causeText = [...]string{
	unexplained: "not explained",
	inHandler:   "worker killed while the handler ran",
	afterEnd:    "worker killed just after the handler's end",
	lateEnd:     "worker killed after the handler's end, the server or the worker being late",
	stopped:     "worker stood still",
	outage:      "server was down",
	outageKill:  "server was down, then worker killed",
	paused:      "machine stood still",
	beforeStart: "worker lost before the handler began",
}

// Outcomes are on their way until settleTime after an outage, in which workers connect again and take stock. When the server died
// they may have been so for onTheWay: it answers late when it is about to write its file. However late somebody is, an outcome
// needs no more than mostLate.
const (
	settleTime = 3 * time.Second
	onTheWay   = 500 * time.Millisecond
	mostLate   = time.Second
)

// execution is one run of a handler. A zero end says that it did not end; a zero gaveUp that it was not told to.
type execution struct {
	run                int
	start, end, gaveUp time.Time
	failures           int
	lost               int
}

// histories reads the journal again, and looks at the messages that ran more often than their failures ask for, or lost a lease.
func (j *judge) histories() error {
	var records []journal.Record
	err := journal.ReadAll(j.o.Journal, func(r *journal.Record) {
		if r.Kind != journal.Beat && int(r.Group) < j.o.Groups && r.Seq >= 0 && r.Seq < j.o.Messages && j.groups[r.Group].look[r.Seq] {
			records = append(records, *r)
		}
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(records, func(a, b journal.Record) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.At, b.At))
	})
	for from := 0; from < len(records); {
		to := from + 1
		for to < len(records) && records[to].Group == records[from].Group && records[to].Seq == records[from].Seq {
			to++
		}
		j.history(records[from:to])
		from = to
	}
	return nil
}

// history looks at the records of one message, in the order of time.
func (j *judge) history(records []journal.Record) {
	name := j.name(int(records[0].Group), records[0].Seq)
	runs, loose := executions(records)
	if loose > 0 {
		j.identity.add("%s: %d ends of handlers that had not begun, or had ended", name, loose)
	}
	j.repeated(name, runs)
	j.ordered(name, runs)
	sent := time.Unix(0, records[0].Sent)
	for i := range runs {
		var before *execution
		if i > 0 {
			before = &runs[i-1]
		}
		j.lossesOf(name, sent, before, &runs[i])
	}
}

// executions pairs starts with ends, and says how many ends had no start.
func executions(records []journal.Record) (runs []execution, loose int) {
	open := map[[3]uint64]int{} // by run and entry
	for i := range records {
		r := &records[i]
		key := [3]uint64{uint64(r.Run), r.Entry.Ms, uint64(r.Entry.Seq)}
		if r.Kind == journal.Start {
			open[key] = len(runs)
			runs = append(runs, execution{run: int(r.Run), start: time.Unix(0, r.At), failures: int(r.Failures), lost: int(r.Lost)})
			continue
		}
		at, ok := open[key]
		if !ok {
			loose++
		} else {
			if r.Kind == journal.GivenUp {
				runs[at].gaveUp = time.Unix(0, r.At)
			} else {
				runs[at].end = time.Unix(0, r.At)
			}
			delete(open, key)
		}
	}
	return runs, loose
}

// repeated finds attempts that ended more than once. Each end but the last must have a cause.
func (j *judge) repeated(name string, runs []execution) {
	ended := map[int][]*execution{}
	for i := range runs {
		if e := &runs[i]; !e.end.IsZero() {
			ended[e.failures] = append(ended[e.failures], e)
		}
	}
	for failures, same := range ended {
		slices.SortFunc(same, func(a, b *execution) int { return a.end.Compare(b.end) })
		for i := 1; i < len(same); i++ {
			c := j.repeatCause(same[i-1], same[i])
			j.repeats[c]++
			if c == unexplained {
				j.unexplainedRepeats.add("%s ended in run %d at %s and again in run %d %v later, after %d failures; %s", name, same[i-1].run,
					clock(same[i-1].end), same[i].run, same[i].end.Sub(same[i-1].end).Round(time.Millisecond), failures, j.fateOf(same[i-1]))
			}
		}
	}
}

// repeatCause says why a handler ran again although it had ended.
func (j *judge) repeatCause(first, again *execution) cause {
	kill, killed := j.faults.Killed(first.run)
	if killed && kill.From.Before(again.start) {
		j.gap.Record(kill.From.Sub(first.end)) // also when it is too long, so that the report shows by how much
	}
	if killed {
		if c := j.killCause(first, kill); c != unexplained {
			return c
		}
	}
	if j.stoppedOver(first) || j.stoppedOver(again) {
		return stopped
	}
	if j.faults.Down(first.end.Add(-settleTime), first.end.Add(onTheWay)) {
		if killed && kill.From.Sub(first.end) < settleTime {
			return outageKill
		}
		return outage
	}
	if j.faults.Paused(first.end.Add(-settleTime), first.end.Add(onTheWay)) {
		return paused
	}
	return unexplained
}

// killCause says whether a worker was killed so soon after a handler's end that the outcome had not reached the server. When the
// server or the worker is late the outcome has so much more time, and as much again until who was late has caught up.
func (j *judge) killCause(e *execution, kill fault.Event) cause {
	switch {
	case kill.From.Sub(e.end) <= j.o.Window:
		return afterEnd
	case j.stoppedOver(e):
		return stopped
	case j.onTheWayAt(e, kill.From):
		return lateEnd
	}
	return unexplained
}

// onTheWayAt says whether the outcome of a handler may not have reached the server at a moment.
func (j *judge) onTheWayAt(e *execution, at time.Time) bool {
	return at.Sub(e.end) <= j.o.Window+min(mostLate, 2*j.lateness(e.run, e.end, at))
}

// stoppedOver says whether a worker stood still just before a handler, beside it, or while its outcome was on the way.
func (j *judge) stoppedOver(e *execution) bool {
	for _, stop := range j.faults.Stops(e.run) {
		if stop.To.After(e.start.Add(-j.o.Lease/2)) && j.onTheWayAt(e, stop.From) {
			return true
		}
	}
	return false
}

// fateOf says what became of the worker of a run, for an example.
func (j *judge) fateOf(e *execution) string {
	kill, killed := j.faults.Killed(e.run)
	if !killed {
		return "its worker was not killed"
	}
	return "its worker was killed " + kill.From.Sub(e.end).Round(time.Millisecond).String() + " after the end"
}

// lossesOf attributes the lost leases that a handler saw and the one before it did not.
func (j *judge) lossesOf(name string, sent time.Time, before, e *execution) {
	n, since := e.lost, sent
	if before != nil {
		n, since = e.lost-before.lost, before.start
	}
	if n <= 0 {
		return
	}
	// Each lease runs out whole, but for the one that was held already: it is renewed each third, or a little later. What stood still
	// may have lost some before.
	need := -j.faults.Lateness(since.Add(-j.o.Lease), e.start)
	if before != nil && before.failures == e.failures {
		c := j.lossCause(before, e)
		need += j.o.Lease / 2
		kill, killed := j.faults.Killed(before.run)
		switch {
		case c == stopped || c == outage || c == paused:
			need -= time.Duration(n) * j.o.Lease
		case killed && kill.From.Before(e.start):
			since = kill.From
		}
		j.lossSeen(name, c, before, e)
		if c == inHandler && n == 1 {
			j.recovery.Record(e.start.Sub(kill.From))
		}
		n--
	}
	for range n {
		c := beforeStart
		need += j.o.Lease * 19 / 20 // the clocks are not the same
		if !j.faults.Any(since, e.start) || e.start.Sub(since) < need {
			c = unexplained
		}
		j.lossSeen(name, c, before, e)
	}
}

func (j *judge) lossSeen(name string, c cause, before, e *execution) {
	j.losses[c]++
	if c != unexplained {
		return
	}
	held := "nobody had begun it"
	if before != nil {
		held = "before that it began at " + clock(before.start) + "; " + j.fateOf(before)
	}
	j.unexplainedLosses.add("%s began in run %d at %s with %d lost leases; %s", name, e.run, clock(e.start), e.lost, held)
}

// lossCause says why the lease of an execution was lost, whose message was delivered again.
func (j *judge) lossCause(held, next *execution) cause {
	kill, killed := j.faults.Killed(held.run)
	if killed && kill.From.Before(next.start) {
		if held.end.IsZero() {
			return inHandler
		}
		if c := j.killCause(held, kill); c != unexplained {
			return c
		}
	}
	switch {
	case j.stoodStill(held.run, held.start, next.start):
		return stopped
	case j.faults.Down(held.start.Add(-settleTime), next.start):
		return outage
	case j.faults.Paused(held.start.Add(-settleTime), next.start):
		return paused
	}
	return unexplained
}

// stoodStill says whether a worker did at some time of a span, or so shortly before that it may not have learnt yet what it had lost:
// a third of a lease after it wakes it renews, and here it gets a half.
func (j *judge) stoodStill(run int, from, to time.Time) bool {
	return j.faults.Stopped(run, from.Add(-j.o.Lease/2), to)
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// kills is how many workers were killed.
func (j *judge) kills() int { return j.faults.Count(fault.Kill) }
