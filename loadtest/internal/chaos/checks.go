package chaos

import (
	"fmt"
	"math"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/oracle"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
)

// fill puts the verdict into the report. What the oracle says is worth nothing unless messages were stored and faults were made.
func (r *run) fill(rep *report.Report, v oracle.Verdict) {
	faults := fault.NewLog(r.events())
	rep.Checks = append(rep.Checks, r.ended(), r.acknowledged(faults))
	rep.Checks = append(rep.Checks, r.faulted(faults)...)
	rep.Checks = append(rep.Checks, v.Checks...)
	crashes := append(append(r.workers.Crashes(), r.problems...), r.watch.problems()...)
	rep.Checks = append(rep.Checks, report.Check{
		Name: "nothing failed by itself: no process, no file", Held: len(crashes) == 0, Want: "0", Got: fmt.Sprint(len(crashes)),
		Examples: crashes[:min(len(crashes), 10)],
	})
	if kills := faults.Count(fault.Kill); kills > 0 {
		rep.Checks = append(rep.Checks, r.repeats(v, kills))
	}
	if r.opts.Flat {
		rep.Checks = append(rep.Checks, r.flat(rep.Plots)...)
	}
	rep.Counts, rep.Tables, rep.Latency = v.Counts, v.Tables, v.Latency
	rep.Held = true
	for _, c := range rep.Checks {
		rep.Held = rep.Held && c.Held
	}
}

func (r *run) ended() report.Check {
	o := &r.opts
	tried := r.producer.Counts().All()
	return report.Check{
		Name: "the run came to its end", Held: tried == int64(o.Messages) && r.drained,
		Want: fmt.Sprintf("%s published, nothing left within %v", report.FormatCount(int64(o.Messages)), o.Drain),
		Got:  report.FormatCount(tried) + " published, " + map[bool]string{true: "nothing left", false: "cut short"}[r.drained],
	}
}

// acknowledged checks that there was something to lose. An outage may cut off what is under way on each connection.
func (r *run) acknowledged(faults *fault.Log) report.Check {
	c := r.producer.Counts()
	most := c.All()/100 + int64(faults.Count(fault.Outage)*r.opts.Connections*producer.MaxBatch)
	got := c.Refused + c.Unknown
	return report.Check{
		Name: "the server took what was published", Held: got <= most && c.Acknowledged > 0,
		Want: fmt.Sprintf("at most %s refused or without an answer: 1 %%, and %d for each outage", report.FormatCount(most),
			r.opts.Connections*producer.MaxBatch),
		Got: report.FormatCount(got) + " of " + report.FormatCount(c.All()),
	}
}

// faulted checks that the faults that were asked for were made: at least a third of what had the time.
func (r *run) faulted(faults *fault.Log) []report.Check {
	o := &r.opts
	stops := o.StopEvery
	if stops > 0 {
		stops = max(stops, o.stopFor()) // one at a time
	}
	var checks []report.Check
	for _, f := range []struct {
		kind     fault.Kind
		name     string
		interval time.Duration
	}{
		{fault.Kill, "workers were killed", o.KillEvery},
		{fault.Stop, "workers were stopped for a while", stops},
		{fault.Outage, "the server was killed", o.CrashEvery},
	} {
		if f.interval <= 0 {
			continue
		}
		want := int(r.hurt/f.interval) / 3
		got := faults.Count(f.kind)
		checks = append(checks, report.Check{
			Name: f.name, Held: got >= want, Want: fmt.Sprintf("at least %d times: a third of what %v had the time for", want, r.hurt.Round(time.Second)),
			Got: fmt.Sprintf("%d times", got),
		})
	}
	return checks
}

// Outcomes are written within a millisecond or so: a kill finds no more of them on their way than a worker ends in usualDelay, also
// on a busy machine. What was taken over together ends together, so a kill may find as many as there are handlers: that evens out with
// the root of the number of kills. It is a coarse net for runs of any size; --max-repeats is the fine one.
const (
	usualDelay   = 5 * time.Millisecond
	leastRepeats = 2
)

func (r *run) repeats(v oracle.Verdict, kills int) report.Check {
	most := r.opts.MaxRepeats
	if most == 0 {
		ended := r.producer.Counts().Acknowledged * int64(r.opts.Groups)
		most = max(leastRepeats, float64(ended)/r.published.Seconds()/float64(r.opts.Workers)*usualDelay.Seconds())
		most += float64(r.opts.handlers()) / math.Sqrt(float64(kills))
	}
	return report.Check{
		Name: "few handlers run again after their end", Held: v.RepeatedPerKill <= most,
		Want: fmt.Sprintf("at most %.2f per kill", most), Got: fmt.Sprintf("%.2f", v.RepeatedPerKill),
	}
}
