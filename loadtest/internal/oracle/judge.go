package oracle

import (
	"fmt"
	"math"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
)

// judge gathers the evidence. What it keeps of each message lies in arrays by number, some 40 bytes with one group, for there may
// be millions of them.
type judge struct {
	o      Options
	faults *fault.Log
	beats  map[uint32]*beats

	status []producer.Status // 0: not tried
	ids    []journal.ID      // the zero id: not known
	groups []groupTally

	lost, twice, left, budget, healthyDead, mustDie, uncounted, identity problems
	unexplainedRepeats, unexplainedLosses, miscounted, beside            problems

	acknowledged, refused, unknown, unknownFound int64
	starts, ok, failed, deadLetters              int64
	placed                                       map[place]int64
	repeats, losses, overlaps                    map[cause]int64
	firstStart, recovery, gap                    *report.Histogram
}

// groupTally is what a group did with each message. A set of attempts has a bit for each number of failures before it.
type groupTally struct {
	started, ended []uint16 // attempts that began, and that ended at least once
	ok             []bool   // it was handled
	places         []uint8  // in how many places it is, see placeCount
	lost           []uint8  // the most lost leases that a handler saw
	look           []bool   // its history is looked at
}

func newJudge(o Options) *judge {
	j := &judge{
		o: o, faults: fault.NewLog(o.Faults), beats: map[uint32]*beats{},
		status: make([]producer.Status, o.Messages), ids: make([]journal.ID, o.Messages), groups: make([]groupTally, o.Groups),
		placed: map[place]int64{}, repeats: map[cause]int64{}, losses: map[cause]int64{}, overlaps: map[cause]int64{},
		firstStart: report.NewHistogram(), recovery: report.NewHistogram(), gap: report.NewHistogram(),
	}
	for i := range j.groups {
		n := o.Messages
		j.groups[i] = groupTally{
			started: make([]uint16, n), ended: make([]uint16, n), ok: make([]bool, n), places: make([]uint8, n),
			lost: make([]uint8, n), look: make([]bool, n),
		}
	}
	return j
}

// ack takes the outcome of a publish.
func (j *judge) ack(a producer.Ack) {
	if a.Seq < 0 || a.Seq >= j.o.Messages || j.status[a.Seq] != 0 {
		j.identity.add("message %d was published twice, or is not one of %d", a.Seq, j.o.Messages)
		return
	}
	j.status[a.Seq] = a.Status
	switch a.Status {
	case producer.Acknowledged:
		j.acknowledged++
		j.ids[a.Seq] = journal.ID{Ms: a.Ms, Seq: a.N}
	case producer.Refused:
		j.refused++
	case producer.Unknown:
		j.unknown++
	}
}

// known checks that a message met somewhere is one that was published, and under the id that was acknowledged. The id of one
// whose publish is unknown is learnt when it is met first.
func (j *judge) known(seq int, id journal.ID, where string) bool {
	if seq < 0 || seq >= j.o.Messages || j.status[seq] == 0 {
		j.identity.add("%s: message %d, id %v, was never published", where, seq, id)
		return false
	}
	if j.status[seq] == producer.Refused {
		j.identity.add("%s: message %d, id %v, was refused by the server", where, seq, id)
		return false
	}
	switch j.ids[seq] {
	case journal.ID{}:
		j.ids[seq] = id
		j.unknownFound++
	case id:
	default:
		j.identity.add("%s: message %d has the id %v, and was published as %v", where, seq, id, j.ids[seq])
	}
	return true
}

// record takes one record of the journal.
func (j *judge) record(r *journal.Record) {
	if r.Kind == journal.Beat {
		j.beat(r)
		return
	}
	if int(r.Group) >= j.o.Groups {
		j.identity.add("message %d was handled by group %d, which does not exist", r.Seq, r.Group)
		return
	}
	if !j.known(r.Seq, r.Original, "in the journal of run "+fmt.Sprint(r.Run)) {
		return
	}
	g := &j.groups[r.Group]
	attempt := uint16(1) << min(r.Failures, 15)
	switch r.Kind {
	case journal.Start:
		j.start(g, r)
		g.look[r.Seq] = g.look[r.Seq] || g.started[r.Seq]&attempt != 0
		g.started[r.Seq] |= attempt
	case journal.OK, journal.Failed:
		j.end(g, r)
		g.look[r.Seq] = g.look[r.Seq] || g.ended[r.Seq]&attempt != 0
		g.ended[r.Seq] |= attempt
	case journal.GivenUp, journal.Beat: // of these the histories tell, and the beats above
	}
}

func (j *judge) start(g *groupTally, r *journal.Record) {
	j.starts++
	if int(r.Failures) > j.o.Plan.MaxRetries {
		j.budget.add("%s began after %d failures, of which %d are retried", j.name(int(r.Group), r.Seq), r.Failures, j.o.Plan.MaxRetries)
	}
	if int(r.Lost) > j.o.MaxLostLeases {
		j.budget.add("%s began after %d lost leases, of which %d are allowed", j.name(int(r.Group), r.Seq), r.Lost, j.o.MaxLostLeases)
	}
	if r.Lost > 0 {
		g.look[r.Seq] = true
		g.lost[r.Seq] = max(g.lost[r.Seq], uint8(min(r.Lost, math.MaxUint8)))
	} else if r.Failures == 0 {
		j.firstStart.Record(time.Duration(r.At - r.Sent))
	}
}

func (j *judge) end(g *groupTally, r *journal.Record) {
	fails := j.o.Plan.Fails(int(r.Group), r.Seq, int(r.Failures))
	if fails != (r.Kind == journal.Failed) {
		j.identity.add("%s: the handler did not do as planned after %d failures", j.name(int(r.Group), r.Seq), r.Failures)
	}
	if r.Kind == journal.OK {
		j.ok++
		g.ok[r.Seq] = true
		return
	}
	j.failed++
}

func (j *judge) name(group, seq int) string {
	id := "of unknown id"
	if j.ids[seq] != (journal.ID{}) {
		id = j.ids[seq].String()
	}
	if j.o.Groups == 1 {
		return fmt.Sprintf("message %d (%s)", seq, id)
	}
	return fmt.Sprintf("message %d (%s) in %s", seq, id, message.Group(group))
}

// conserve looks at each message in the end: it was handled, or is in exactly one place, and its failures were counted.
func (j *judge) conserve() {
	for group := range j.groups {
		g := &j.groups[group]
		for seq, status := range j.status {
			switch {
			case g.places[seq] > 1:
				j.twice.add("%s is in %d places", j.name(group, seq), g.places[seq])
			case status == producer.Acknowledged && g.places[seq] == 0 && !g.ok[seq]:
				j.lost.add("%s was acknowledged; it was not handled and is nowhere%s", j.name(group, seq), j.fate(g, seq))
			case status == producer.Unknown && g.started[seq] != 0 && g.places[seq] == 0 && !g.ok[seq]:
				j.lost.add("%s was read once; it was not handled and is nowhere%s", j.name(group, seq), j.fate(g, seq))
			}
			// Who begins after n failures has ended after n-1.
			if bare := g.started[seq] &^ (g.ended[seq]<<1 | 1); bare != 0 {
				j.uncounted.add("%s has failures counted that no handler returned", j.name(group, seq))
			}
			if g.ended[seq]&^g.started[seq] != 0 {
				j.identity.add("%s: a handler ended that had not begun", j.name(group, seq))
			}
		}
	}
}

// fate says what a lost message should have come to.
func (j *judge) fate(g *groupTally, seq int) string {
	switch {
	case g.started[seq] == 0:
		return ", no handler began it"
	case g.ended[seq] == 0:
		return ", its handlers began and did not end"
	}
	return ", its handlers failed"
}
