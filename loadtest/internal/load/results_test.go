package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/sweep"
)

func carried(asked float64, acked int64, p50 time.Duration) Carried {
	c := Carried{Window: sweep.Window{Asked: asked, Acked: acked, Took: time.Second}}
	for i := range 21 {
		c.Backlog = append(c.Backlog, sweep.Sample{At: time.Duration(i) * 50 * time.Millisecond, Backlog: 3})
	}
	c.Latency = report.Latency{Name: "at a rate", N: acked, P50: p50, P90: 2 * p50, P99: 3 * p50, P999: 4 * p50, Max: 5 * p50}
	return c
}

func TestFill(t *testing.T) {
	t.Parallel()
	results := Results{
		Published: []Published{{1, 1000, time.Second}, {4, 9000, 2 * time.Second}},
		Drained:   []Drained{{1, 12000, 500 * time.Millisecond}, {2, 5, 0}},
		Carried:   []Carried{carried(2000, 2000, time.Millisecond), carried(8000, 7000, time.Second), carried(6000, 6000, 2*time.Millisecond)},
	}
	var got report.Report
	results.Fill(&got)
	wantTables := []report.Table{
		{
			Title: "Publish, as fast as possible, without workers", Columns: []string{"connections", "acknowledged", "took", "messages/s"},
			Rows: [][]string{{"1", "1,000", "1 s", "1,000"}, {"4", "9,000", "2 s", "4,500"}},
		},
		{
			Title:   "Drain of a full queue, without a producer, from when all workers handle",
			Columns: []string{"worker processes", "messages", "took", "messages/s"},
			Rows:    [][]string{{"1", "12,000", "500 ms", "24,000"}, {"2", "5", "0 s", "0"}},
		},
		{
			Title:   "End to end: producer and workers together, latency from send to the start of the handler",
			Columns: []string{"asked/s", "acknowledged/s", "backlog grows/s", "p50", "p90", "p99", "p99.9", "max", "sustained"},
			Rows: [][]string{
				{"2,000", "2,000", "0", "1 ms", "2 ms", "3 ms", "4 ms", "5 ms", "yes"},
				{"6,000", "6,000", "0", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms", "yes"},
				{"8,000", "7,000", "0", "1 s", "2 s", "3 s", "4 s", "5 s", "no: 7000/s acknowledged"},
			},
		},
	}
	if diff := cmp.Diff(wantTables, got.Tables); diff != "" {
		t.Error(diff)
	}
	wantCurves := []report.Curve{
		{Title: "Publish rate by connections", X: "connections", LogX: true, Unit: "messages/s",
			Lines: []report.Line{{Name: "publish", Points: []report.XY{{X: 1, Y: 1000}, {X: 4, Y: 4500}}}}},
		{Title: "Drain rate by worker processes", X: "worker processes", LogX: true, Unit: "messages/s",
			Lines: []report.Line{{Name: "drain", Points: []report.XY{{X: 1, Y: 24000}, {X: 2, Y: 0}}}}},
		{Title: "End-to-end latency by rate", X: "messages/s asked", LogX: true, Unit: "s", Log: true, Lines: []report.Line{
			{Name: "p50", Points: []report.XY{{X: 2000, Y: .001}, {X: 6000, Y: .002}, {X: 8000, Y: 1}}},
			{Name: "p99", Points: []report.XY{{X: 2000, Y: .003}, {X: 6000, Y: .006}, {X: 8000, Y: 3}}},
			{Name: "p99.9", Points: []report.XY{{X: 2000, Y: .004}, {X: 6000, Y: .008}, {X: 8000, Y: 4}}},
		}},
	}
	if diff := cmp.Diff(wantCurves, got.Curves); diff != "" {
		t.Error(diff)
	}
	if len(got.Latency) != 3 || len(got.Plots) != 0 {
		t.Errorf("%d latencies, %d plots", len(got.Latency), len(got.Plots))
	}
	var empty report.Report
	(&Results{}).Fill(&empty)
	if diff := cmp.Diff(report.Report{}, empty); diff != "" {
		t.Error(diff)
	}
}

// Of what the journals say, the messages of the phase count, each once; workers are known from the first one on.
func TestRecords(t *testing.T) {
	t.Parallel()
	r := newRecords()
	began := time.Unix(1000, 0)
	at := func(d time.Duration) int64 { return began.Add(d).UnixNano() }
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	handle := func(run uint32, seq int, sent, start, end time.Duration) {
		r.add(&journal.Record{Seq: seq, Kind: journal.Start, Run: run, Sent: at(sent), At: at(start)})
		r.add(&journal.Record{Seq: seq, Kind: journal.OK, Run: run, Sent: at(sent), At: at(end)})
	}
	handle(1, 0, ms(-20), ms(-10), ms(-5)) // of a warming-up
	r.from(began)
	handle(1, 0, 0, ms(10), ms(11))
	handle(2, 64, ms(10), ms(30), ms(31))
	handle(2, 64, ms(10), ms(50), ms(51)) // again
	handle(1, 1, ms(1500), ms(2530), ms(2531))
	handle(1, 1, ms(-1), ms(2540), ms(2541)) // was late for the phase before
	for seq, want := range map[int]bool{0: true, 1: true, 2: false, 64: true, 63: false, 6400: false} {
		if r.handled(seq) != want {
			t.Errorf("message %d: %v", seq, !want)
		}
	}
	if len(r.ends) != 3 || r.repeated != 1 || len(r.began) != 2 {
		t.Errorf("ends %v, %d repeated, workers %v", r.ends, r.repeated, r.began)
	}
	// The second worker began at 30 ms; two handlers ended later, the last one at 2531.
	if n, took := r.drained(); n != 2 || took != ms(2501) {
		t.Errorf("drained %d in %v", n, took)
	}
	l := r.all.Latency("")
	if l.N != 4 || l.Max != ms(1030) || l.P50 < ms(19) || l.P50 > ms(21) {
		t.Errorf("%+v", l)
	}
	plots := r.plots(3500 * time.Millisecond)
	if diff := cmp.Diff([]report.Point{{At: 0, V: 3}, {At: time.Second, V: 0}, {At: 2 * time.Second, V: 1}}, plots[1].Series[0].Points); diff != "" {
		t.Error(diff)
	}
	if points := plots[0].Series[2].Points; len(points) != 2 || points[0].V != 0.04 || points[1].At != 2*time.Second {
		t.Errorf("latency %v", points)
	}
	if points := r.plots(1500 * time.Millisecond)[1].Series[0].Points; len(points) != 1 {
		t.Errorf("half a second too much: %v", points)
	}
}
