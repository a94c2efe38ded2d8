package oracle

import (
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
)

// beats are when a worker process was given no time: what it had to write then is late, and nobody is to blame.
type beats struct {
	last time.Time
	late []fault.Event
}

// slowBeat is how far apart two beats may be.
const slowBeat = 2 * journal.BeatEvery

// beat takes a beat. Those of one run come in the order of time.
func (j *judge) beat(r *journal.Record) {
	b := j.beats[r.Run]
	at := time.Unix(0, r.At)
	if b == nil {
		j.beats[r.Run] = &beats{last: at}
		return
	}
	if at.Sub(b.last) > slowBeat {
		b.late = append(b.late, fault.Event{Kind: fault.Late, From: b.last.Add(journal.BeatEvery), To: at})
	}
	b.last = at
}

// lateness is how long neither the server nor a worker did what it should within a span that ends with the worker's own end.
func (j *judge) lateness(run int, from, to time.Time) time.Duration {
	sum := j.faults.Lateness(from, to)
	b := j.beats[uint32(run)]
	if b == nil {
		return sum
	}
	late := b.late
	if to.Sub(b.last) > slowBeat { // the beat that was due did not come any more
		late = append(slices.Clip(late), fault.Event{Kind: fault.Late, From: b.last.Add(journal.BeatEvery), To: to})
	}
	return sum + fault.Within(late, from, to)
}
