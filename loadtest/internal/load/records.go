package load

import (
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
)

// records is what the journals of a phase say. Messages that were due before the moment that from named do not count.
type records struct {
	// since is that moment, in ns since 1970.
	since int64
	// began is when each worker process started its first handler, also one that does not count.
	began map[uint32]int64
	// bits has one for each message that was handled.
	bits []uint64
	// ends are the times at which handlers ended well, the first one of each message.
	ends []int64
	// repeated counts handlers that ended well after the first.
	repeated int64
	// all are the latencies of the phase, seconds those of each second in which handlers started.
	all     *report.Histogram
	seconds []*report.Histogram

	// shown is how many had ended at shownAt, rate how many did per second before that.
	shown   int
	shownAt time.Time
	rate    float64
}

func newRecords() records {
	return records{began: make(map[uint32]int64), all: report.NewHistogram(), shownAt: time.Now()}
}

// from forgets everything but the workers, and counts messages that were due at a moment or later.
func (r *records) from(moment time.Time) {
	began := r.began
	*r = newRecords()
	r.began, r.since = began, moment.UnixNano()
}

func (r *records) add(one *journal.Record) {
	if one.Kind == journal.Start {
		if at, ok := r.began[one.Run]; !ok || one.At < at {
			r.began[one.Run] = one.At
		}
	}
	if one.Sent < r.since || one.Seq >= endless {
		return
	}
	switch one.Kind {
	case journal.Start:
		latency := time.Duration(one.At - one.Sent)
		r.all.Record(latency)
		r.second(one.At).Record(latency)
	case journal.OK:
		if r.handled(one.Seq) {
			r.repeated++
			return
		}
		for len(r.bits) <= one.Seq/64 {
			r.bits = append(r.bits, 0)
		}
		r.bits[one.Seq/64] |= 1 << (one.Seq % 64)
		r.ends = append(r.ends, one.At)
	case journal.Failed, journal.GivenUp, journal.Beat: // none is planned, and beats are not told
	}
}

// second returns the histogram of the second of a time.
func (r *records) second(at int64) *report.Histogram {
	i := int(max(at-r.since, 0) / int64(time.Second))
	for len(r.seconds) <= i {
		r.seconds = append(r.seconds, nil)
	}
	if r.seconds[i] == nil {
		r.seconds[i] = report.NewHistogram()
	}
	return r.seconds[i]
}

// handled says whether a message was.
func (r *records) handled(seq int) bool {
	return seq/64 < len(r.bits) && r.bits[seq/64]&(1<<(seq%64)) != 0
}

// lately is how many messages were handled per second in the last second or so.
func (r *records) lately() float64 {
	if passed := time.Since(r.shownAt); passed >= time.Second {
		r.rate = float64(len(r.ends)-r.shown) / passed.Seconds()
		r.shown, r.shownAt = len(r.ends), time.Now()
	}
	return r.rate
}

// drained returns how many handlers ended, and in which time, after the last of the workers had started its first one.
func (r *records) drained() (n int64, took time.Duration) {
	var from, to int64
	for _, at := range r.began {
		from = max(from, at)
	}
	for _, at := range r.ends {
		if at > from {
			n++
			to = max(to, at)
		}
	}
	return n, time.Duration(max(to-from, 0))
}

// plots returns latency and rate by the second, for the whole seconds of the time that the producer took.
func (r *records) plots(took time.Duration) []report.Plot {
	latency := report.Plot{Title: "End-to-end latency", Unit: "s", Log: true, Series: []report.Series{{Name: "p50"}, {Name: "p99"}, {Name: "max"}}}
	rate := report.Plot{Title: "Handlers started", Unit: "messages/s", Series: []report.Series{{Name: "started"}}}
	for i, h := range r.seconds[:min(len(r.seconds), int(took/time.Second))] {
		at := time.Duration(i) * time.Second
		var n int64
		if h != nil {
			l := h.Latency("")
			n = l.N
			for j, d := range []time.Duration{l.P50, l.P99, l.Max} {
				latency.Series[j].Points = append(latency.Series[j].Points, report.Point{At: at, V: d.Seconds()})
			}
		}
		rate.Series[0].Points = append(rate.Series[0].Points, report.Point{At: at, V: float64(n)})
	}
	return []report.Plot{latency, rate}
}
