package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/loadtest/internal/load"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/sweep"
)

// All mistakes are told at once, each with what to use instead, before anything is started.
func TestLoadFlags(t *testing.T) {
	t.Parallel()
	cmd := newLoadCommand()
	cmd.SetArgs(strings.Fields("--aof maybe --rate -1 --duration 1ms --connections 0 --workers 0 --concurrency 0 --prefetch -1 " +
		"--messages 0 --body 1 --html /nowhere/at/all.html"))
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`--aof "maybe": use off, everysec or always`, "--rate -1: use 0 to", "--duration 1ms: use 1s to 1h", "--connections 0: use 1 to",
		"--workers 0: use 1 to", "--concurrency 0: use 1", "--prefetch -1: use 0", "--messages 0: use 1 to", "--body 1: use 24 to",
		"there is no folder /nowhere/at",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}

// windowAt is one of a second in which acked messages came through, and no backlog.
func windowAt(asked float64, acked int64) sweep.Window {
	w := sweep.Window{Asked: asked, Acked: acked, Took: time.Second}
	for i := range 21 {
		w.Backlog = append(w.Backlog, sweep.Sample{At: time.Duration(i) * 50 * time.Millisecond})
	}
	return w
}

func TestLoadVerdict(t *testing.T) {
	t.Parallel()
	good := load.Tally{Acknowledged: 10, Handled: 10, Repeated: 1}
	held := &load.Results{Carried: []load.Carried{{Window: windowAt(100, 100)}}}
	for _, row := range []struct {
		name    string
		sweep   bool
		results *load.Results
		tally   load.Tally
		err     error
		broken  []string
	}{
		{"all well", false, held, good, nil, nil},
		{"one lost", false, held, load.Tally{Acknowledged: 10, Handled: 9, Repeated: 1}, nil, []string{"every acknowledged message was handled"}},
		{"refused", false, held, load.Tally{Acknowledged: 10, Handled: 10, Refused: 1}, nil, []string{"every publish was acknowledged"}},
		{"cut off", false, held, load.Tally{Acknowledged: 10, Handled: 10, Unknown: 1}, nil, []string{"every publish was acknowledged"}},
		{"too slow", false, &load.Results{Carried: []load.Carried{{Window: windowAt(100, 90)}}}, good, nil, []string{"the rate is sustained"}},
		{"interrupted", false, &load.Results{}, good, context.Canceled, []string{"the run went through all phases"}},
		{"failed", true, &load.Results{Sustained: 1}, good, errors.New("x"), []string{"the run went through all phases"}},
		{"a sweep", true, &load.Results{Sustained: 2000, Broken: 4000}, good, nil, nil},
		{"no rate", true, &load.Results{Broken: 250}, good, nil, []string{"some rate is sustained"}},
	} {
		f := &loadFlags{sweep: row.sweep}
		f.opts.Rate = 100
		var r report.Report
		f.judge(&r, row.results, row.tally, row.err)
		var broken []string
		for _, c := range r.Checks {
			if !c.Held {
				broken = append(broken, c.Name)
			}
		}
		if diff := cmp.Diff(row.broken, broken); diff != "" || r.Held != (row.broken == nil) {
			t.Errorf("%s: held %v\n%s", row.name, r.Held, diff)
		}
	}
}
