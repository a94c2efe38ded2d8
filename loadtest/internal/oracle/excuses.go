package oracle

import (
	"fmt"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
)

// Of the handlers that ended well one in lateShare may run again because somebody was late, and all that lateSlack workers held
// besides: more is no accident of a busy machine.
const (
	lateShare = 200
	lateSlack = 2
)

// bounded holds what faults excuse against what they can have done: a fault takes no more than its workers held. So a mistake that
// shows only beside faults does not hide behind them.
func (j *judge) bounded() report.Check {
	held, all := int64(j.o.Held), int64(j.o.Held)*int64(j.o.Workers)
	count := func(k fault.Kind) int64 { return int64(j.faults.Count(k)) }
	kills, stops, outages, pauses := count(fault.Kill), count(fault.Stop), count(fault.Outage), count(fault.Pause)
	c := report.Check{Name: "faults excuse no more than they can have done", Held: true, Want: "0 causes that excuse too much"}
	n := 0
	for _, b := range []struct {
		what string
		got  int64
		most int64
	}{
		{"handlers that ran again: " + causeText[lateEnd], j.repeats[lateEnd], lateSlack*held + j.ok/lateShare},
		{"handlers that ran again: " + causeText[stopped], j.repeats[stopped], stops * held},
		{"handlers that ran again: " + causeText[outage], j.repeats[outage], outages * all},
		{"handlers that ran again: " + causeText[outageKill], j.repeats[outageKill], min(kills*held, outages*all)},
		{"handlers that ran again: " + causeText[paused], j.repeats[paused], pauses * all},
		{"handlers that ran beside another: " + causeText[stopped], j.overlaps[stopped], stops * held},
		{"handlers that ran beside another: " + causeText[outage], j.overlaps[outage], outages * all},
		{"handlers that ran beside another: " + causeText[paused], j.overlaps[paused], pauses * all},
		{"leases lost in handlers of killed workers", j.losses[inHandler], kills * held},
		{"leases lost: " + causeText[stopped], j.losses[stopped], stops * held},
		{"leases lost: " + causeText[outage], j.losses[outage], outages * all},
		{"leases lost: " + causeText[paused], j.losses[paused], pauses * all},
		{"leases lost: " + causeText[beforeStart], j.losses[beforeStart], (kills+stops)*held + (outages+pauses)*all},
	} {
		if b.got > b.most {
			n++
			c.Held = false
			c.Examples = append(c.Examples, fmt.Sprintf("%s: %d, at most %d", b.what, b.got, b.most))
		}
	}
	c.Got = fmt.Sprint(n)
	return c
}
