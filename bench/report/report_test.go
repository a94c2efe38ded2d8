package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// example is a run with three rounds of two systems.
func example() *Run {
	r := &Run{
		Date: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), Rounds: 3, Length: "1.5s", PaceFor: "3s", Took: "20m",
		Machine: []string{"2 CPUs"}, Missing: []string{"BullMQ: needs Node"}, Busy: "load",
		Systems: []System{
			{Name: "xstreamq", Title: "xstreamq", Kind: Ours, Version: "v1", Settings: "default"},
			{Name: "asynq", Title: "asynq", Kind: Peer, Version: "v2", Settings: "tuned"},
			{Name: "bare", Title: "bare loop", Kind: Ceiling, Version: "v3", Settings: "nothing"},
		},
	}
	for _, rate := range []float64{210_000, 190_000, 200_000} {
		r.Add("xstreamq", Drain1, false, Sample{Messages: 1, Rate: rate, RedisCPU: 1.3, WorkerRSS: 27})
	}
	for _, rate := range []float64{9_000, 10_000, 12_000} {
		r.Add("asynq", Drain1, false, Sample{Messages: 1, Rate: rate, RedisCPU: 40})
	}
	r.Add("bare", Drain1, false, Sample{Messages: 1, Rate: 300_000, RedisCPU: 1})
	r.Add("xstreamq", EndToEnd, false, Sample{Messages: 1, Rate: 100_000, ClientCPU: 15})
	r.Add("asynq", EndToEnd, false, Sample{Messages: 1, Rate: 5_000})
	r.Add("xstreamq", Latency(8_000), true, Sample{Messages: 1, P50: 0.4, P99: 12, P999: 20})
	r.Add("xstreamq", Latency(40_000), true, Sample{NotSustained: "too slow"})
	return r
}

func markOf(t *testing.T, r *Run, what string) Mark {
	t.Helper()
	for _, m := range r.Marks() {
		if strings.HasPrefix(m.What, what) {
			return m
		}
	}
	t.Fatalf("no mark %q", what)
	return Mark{}
}

func TestMarks(t *testing.T) {
	t.Parallel()
	r := example()
	for _, c := range []struct{ what, measured, verdict string }{
		{"drain, 1 process, beside asynq", "20.0 times", "yes"}, // the medians, 200,000 and 10,000
		{"drain, 1 process, beside watermill", nothing, "not measured"},
		{"end to end, beside asynq", "20.0 times", "yes"},
		{"Redis CPU", "1.30 times", "yes"},
		{"p50 latency at 8000/s", "0.40 ms", "yes"},
		{"p99 latency at 8000/s", "12.0 ms", "NO"},
		{"p99 latency at 40000/s, AOF off", nothing, "not measured"},
		{"p99 latency at 40000/s, AOF everysec", "not sustained: too slow", "NO"},
		{"peak RSS", "27.0 MiB", "yes"},
		{"client CPU", "1.50 s", "NO"},
	} {
		m := markOf(t, r, c.what)
		if m.Measured() != c.measured || m.Verdict() != c.verdict {
			t.Errorf("%s: %s, %s; want %s, %s", c.what, m.Measured(), m.Verdict(), c.measured, c.verdict)
		}
	}
}

func TestSustainedIsWhatMostSamplesSay(t *testing.T) {
	t.Parallel()
	good, bad := Sample{P99: 5}, Sample{P99: 900, NotSustained: "late"}
	if ok, _ := (&Result{Samples: []Sample{good, bad, good}}).Sustained(); !ok {
		t.Error("one of three was late: want sustained")
	}
	if ok, why := (&Result{Samples: []Sample{bad, good, bad}}).Sustained(); ok || why != "late" {
		t.Errorf("two of three were late: got %t, %q", ok, why)
	}
	if got := latencyCell(&Result{Samples: []Sample{good, bad, good}}); !strings.Contains(got, "/ 5.0 /") {
		t.Errorf("cell %q: want the samples that held the rate", got)
	}
}

func TestPageReplacesOnlyItsPart(t *testing.T) {
	t.Parallel()
	old := "before\n" + pageBegin + "\nold figures\n" + pageEnd + "\nafter\n"
	page, err := example().Page(old)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(page, "before\n"+pageBegin) || !strings.HasSuffix(page, pageEnd+"\nafter\n") || strings.Contains(page, "old figures") {
		t.Errorf("got:\n%s", page)
	}
	for _, want := range []string{"200k (190k-210k)", "| 10k (9.0k-12k) |", "not sustained", "**Not measured:** BullMQ", "**The machine was busy:** load", "- **asynq** (v2): tuned."} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in:\n%s", want, page)
		}
	}
	again, err := example().Page(page)
	if err != nil || again != page {
		t.Errorf("written twice it differs (%v)", err)
	}
	if _, err := example().Page("no markers"); err == nil {
		t.Error("a page without markers was taken")
	}
}

func TestTablesAsText(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, table := range example().Tables() {
		if err := table.Text(&b); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(b.String(), "200k (190k-210k)") {
		t.Errorf("got:\n%s", b.String())
	}
}

func TestFiguresSurviveJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(example())
	if err != nil {
		t.Fatal(err)
	}
	var read Run
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if got := markOf(t, &read, "drain, 1 process, beside asynq").Measured(); got != "20.0 times" {
		t.Errorf("read back: %s", got)
	}
}

func TestSVG(t *testing.T) {
	t.Parallel()
	svg, err := example().SVG()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "asynq", "drain, 1 process"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in the plot", want)
		}
	}
}
