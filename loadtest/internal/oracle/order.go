package oracle

import (
	"time"
)

// ordered looks at the starts of a message, one after the other: each must count what became of the one before, and none may begin
// while that one still runs.
func (j *judge) ordered(name string, runs []execution) {
	for i := 1; i < len(runs); i++ {
		before, next := &runs[i-1], &runs[i]
		back := next.failures < before.failures || next.lost < before.lost
		if back || next.failures == before.failures && next.lost == before.lost {
			if c := j.disturbed(before, next); c == unexplained {
				j.miscounted.add("%s began in run %d at %s with %d failures and %d lost leases, and again in run %d %v later with %d and %d; %s",
					name, before.run, clock(before.start), before.failures, before.lost, next.run,
					next.start.Sub(before.start).Round(time.Millisecond), next.failures, next.lost, j.fateOf(before))
			}
		}
		if over := j.over(before); next.start.Before(over) {
			c := j.disturbed(before, next)
			j.overlaps[c]++
			if c == unexplained {
				j.beside.add("%s began in run %d at %s, %v before its handler in run %d was over", name, next.run, clock(next.start),
					over.Sub(next.start).Round(time.Microsecond), before.run)
			}
		}
	}
}

// over is when a handler did not run any more. Where nothing tells, it is taken to have ended at once.
func (j *judge) over(e *execution) time.Time {
	switch kill, killed := j.faults.Killed(e.run); {
	case !e.end.IsZero():
		return e.end
	case !e.gaveUp.IsZero():
		return e.gaveUp
	case killed:
		return kill.From
	}
	return e.start
}

// disturbed says what may have brought two runs of a message out of their order: what stood still did not know that its lease was
// lost. A kill never does.
func (j *judge) disturbed(before, next *execution) cause {
	switch {
	case j.stoodStill(before.run, before.start, next.start), j.stoodStill(next.run, next.start, next.start):
		return stopped
	case j.faults.Down(before.start.Add(-settleTime), next.start):
		return outage
	case j.faults.Paused(before.start.Add(-settleTime), next.start):
		return paused
	}
	return unexplained
}
