package oracle

import (
	"fmt"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
)

// verdict puts the evidence together. It is called once.
func (j *judge) verdict() Verdict {
	j.missingDead()
	var v Verdict
	v.Checks = []report.Check{
		j.lost.none("no acknowledged message is lost"),
		j.twice.none("no message is in two places"),
		j.left.none(j.leftName()),
		j.budget.none("no budget is overrun"),
		j.healthyDead.none("no healthy message is dead"),
		j.mustDie.none(fmt.Sprintf("who must die is dead, with rc %d and an oid", j.o.Plan.MaxRetries+1)),
		j.chance(),
		j.uncounted.none("no failure is counted that no handler returned"),
		j.identity.none("what is handled or kept was published, once, under its id"),
		j.unexplainedRepeats.none(fmt.Sprintf("each repeated run ended within %v before its worker's kill, or beside another cause", j.o.Window)),
		j.unexplainedLosses.none("each lost lease has a fault as its cause, and had the time to run out"),
		j.miscounted.none("each delivery counts what became of the one before"),
		j.beside.none("no handler runs beside another of its message, but of a worker or a server that stood still"),
		j.bounded(),
	}
	v.Counts = []report.Count{
		{Name: "publishes acknowledged", N: j.acknowledged},
		{Name: "publishes refused", N: j.refused},
		{Name: "publishes without an answer", N: j.unknown},
		{Name: "of these, messages found", N: j.unknownFound},
		{Name: "handlers begun", N: j.starts},
		{Name: "handlers ended well", N: j.ok},
		{Name: "handlers failed", N: j.failed},
		{Name: "dead letters", N: j.deadLetters},
		{Name: "workers killed", N: int64(j.kills())},
		{Name: "workers stopped for a while", N: int64(j.faults.Count(fault.Stop))},
		{Name: "outages of the server", N: int64(j.faults.Count(fault.Outage))},
		{Name: "pauses of the whole machine", N: int64(j.faults.Count(fault.Pause))},
		{Name: "times that the server or the machine was late by 10 ms", N: int64(j.faults.Count(fault.Late))},
	}
	v.Tables = j.tables()
	for _, h := range []struct {
		name string
		of   *report.Histogram
	}{
		{"publish due to first handler", j.firstStart}, {"kill to next handler", j.recovery},
		{"end to the kill, of handlers that ran again", j.gap},
	} {
		if h.of.N() > 0 {
			v.Latency = append(v.Latency, h.of.Latency(h.name))
		}
	}
	if kills := j.kills(); kills > 0 {
		v.RepeatedPerKill = float64(j.repeats[afterEnd]+j.repeats[lateEnd]) / float64(kills)
	}
	return v
}

func (j *judge) leftName() string {
	if j.o.Drained {
		return "nothing is left but dead letters"
	}
	return "nothing is left where nobody looks at it again"
}

func (p *problems) none(name string) report.Check {
	return report.Check{Name: name, Held: p.n == 0, Want: "0", Got: fmt.Sprint(p.n), Examples: p.examples}
}

func (j *judge) tables() []report.Table {
	repeats := report.Table{Title: "Handlers that ended twice in one attempt", Columns: []string{"cause", "times", "per kill"}}
	losses := report.Table{Title: "Lost leases that handlers saw", Columns: []string{"cause", "times", "per kill"}}
	overlaps := report.Table{Title: "Handlers that ran beside another of their message", Columns: []string{"cause", "times", "per kill"}}
	for c := unexplained; int(c) < len(causeText); c++ {
		repeats.Rows = append(repeats.Rows, j.causeRow(c, j.repeats)...)
		losses.Rows = append(losses.Rows, j.causeRow(c, j.losses)...)
		overlaps.Rows = append(overlaps.Rows, j.causeRow(c, j.overlaps)...)
	}
	where := report.Table{Title: "Messages in Redis", Columns: []string{"place", "messages"}}
	for p := undelivered; p <= scheduled; p++ {
		if n := j.placed[p]; n > 0 {
			where.Rows = append(where.Rows, []string{p.String(), report.FormatCount(n)})
		}
	}
	tables := []report.Table{repeats, overlaps, losses, j.lossTable(), where}
	kept := tables[:0]
	for _, t := range tables {
		if len(t.Rows) > 0 {
			kept = append(kept, t)
		}
	}
	return kept
}

func (j *judge) causeRow(c cause, of map[cause]int64) [][]string {
	n := of[c]
	if n == 0 {
		return nil
	}
	perKill := "-"
	if kills := j.kills(); kills > 0 {
		perKill = fmt.Sprintf("%.2f", float64(n)/float64(kills))
	}
	return [][]string{{causeText[c], report.FormatCount(n), perKill}}
}

// lossTable shows how near the messages came to the end of their budget of lost leases.
func (j *judge) lossTable() report.Table {
	t := report.Table{
		Title: fmt.Sprintf("Messages by lost leases; MaxLostLeases %d", j.o.MaxLostLeases), Columns: []string{"lost leases", "messages"},
	}
	var by [256]int64
	for group := range j.groups {
		for seq, n := range j.groups[group].lost {
			if j.status[seq] != producer.Refused {
				by[n]++
			}
		}
	}
	for n, count := range by {
		if n > 0 && count > 0 {
			t.Rows = append(t.Rows, []string{fmt.Sprint(n), report.FormatCount(count)})
		}
	}
	return t
}
