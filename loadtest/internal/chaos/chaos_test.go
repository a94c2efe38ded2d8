package chaos

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/oracle"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
)

// small is a run of a few seconds.
func small(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		log, err := os.ReadFile(filepath.Join(dir, "workers.log"))
		if t.Failed() && err == nil {
			t.Logf("the workers' logs:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return Options{
		Name: "chaos", Keys: oracle.Keys{Prefix: "t:", Queue: "q"}, Command: []string{os.Args[0]}, Env: []string{workerVariable + "=1"},
		Dir: dir, Progress: t.Output(), Messages: 2000, Rate: 1000, Body: 64, Connections: 2, Workers: 3, Groups: 1, Concurrency: 16,
		Visibility: time.Second, Backoff: 50 * time.Millisecond, Handler: 10 * time.Millisecond,
		Plan: message.Plan{Seed: uint64(time.Now().UnixNano()), Rate: 0.2, MaxRetries: 1}, Drain: 90 * time.Second, Window: 100 * time.Millisecond,
	}
}

func own(t *testing.T, o *Options, aof string) {
	t.Helper()
	server, err := supervisor.StartServer("", aof)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Own, o.URL = server, server.URL()
}

func mustRun(t *testing.T, o Options) *report.Report {
	t.Helper()
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func count(t *testing.T, r *report.Report, name string) int64 {
	t.Helper()
	for _, c := range r.Counts {
		if c.Name == name {
			return c.N
		}
	}
	t.Fatalf("the report has no count %q", name)
	return 0
}

// P1, P2, P5, P6 with processes and servers that are killed, one after the other and all at once.
func TestChaos(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *Options){
		"kills": func(_ *testing.T, o *Options) { o.KillEvery = 250 * time.Millisecond },
		"kills with dedupe, two groups": func(_ *testing.T, o *Options) {
			o.KillEvery, o.Dedupe, o.Groups, o.Messages = 300*time.Millisecond, time.Minute, 2, 1000
		},
		"kills, stops and outages": func(t *testing.T, o *Options) {
			if testing.Short() {
				t.Skip("SKIPPED: stops and outages take half a minute, and -short was asked for")
			}
			o.KillEvery, o.StopEvery, o.CrashEvery = 500*time.Millisecond, 1500*time.Millisecond, 1200*time.Millisecond
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := small(t)
			own(t, &o, "always")
			change(t, &o)
			r := mustRun(t, o)
			if !r.Held {
				t.Errorf("the verdict is broken:\n%s", text(t, r))
			}
			if kills, want := count(t, r, "workers killed"), int64(time.Second/o.KillEvery); kills < want {
				t.Errorf("%d kills, at least %d were meant", kills, want)
			}
			if stops := count(t, r, "workers stopped for a while"); o.StopEvery > 0 && stops == 0 {
				t.Error("no worker stood still")
			}
			if outages := count(t, r, "outages of the server"); o.CrashEvery > 0 && outages == 0 {
				t.Error("there was no outage")
			}
			if dead := count(t, r, "dead letters"); dead == 0 {
				t.Error("no message died")
			}
		})
	}
}

// Somebody deletes entries that no worker has read: the run says so, and names them.
func TestChaosFindsWhatIsLost(t *testing.T) {
	t.Parallel()
	o := small(t)
	own(t, &o, "")
	o.Messages, o.Rate, o.Workers, o.Concurrency, o.Prefetch, o.Plan.Rate = 600, 0, 1, 1, 1, 0
	conn := dial(t, o.URL)
	const stream = "t:{q}"
	ended := make(chan *report.Report, 1)
	go func() {
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		ended <- r
	}()
	redistest.WaitFor(t, 30*time.Second, "a full queue", func() bool {
		v, err := conn.Do("XLEN", stream)
		return err == nil && v.Int == int64(o.Messages)
	})
	entries, err := conn.Do("XRANGE", stream, "-", "+")
	if err != nil {
		t.Fatal(err)
	}
	// Not the last one: it would look undelivered for ever.
	for _, e := range entries.Items[o.Messages-10 : o.Messages-5] {
		if _, err := conn.Do("XDEL", stream, e.Items[0].Text); err != nil {
			t.Fatal(err)
		}
	}
	r := <-ended
	for _, c := range r.Checks {
		if lost := c.Name == "no acknowledged message is lost"; c.Held == lost || lost && (c.Got != "5" || len(c.Examples) != 5) {
			t.Errorf("%s", text(t, r))
		}
	}
	if r.Held {
		t.Error("the verdict holds")
	}
}

func dial(t *testing.T, url string) *resp.Conn {
	t.Helper()
	server, err := resp.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := resp.Dial(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// An interrupted run says that it was cut short, and does not call lost what is still on its way.
func TestInterruptedChaos(t *testing.T) {
	t.Parallel()
	o := small(t)
	own(t, &o, "")
	o.Messages, o.KillEvery = 100_000, 200*time.Millisecond
	conn := dial(t, o.URL)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if v, err := conn.Do("XLEN", "t:{q}.group-0.dlq"); err == nil && v.Int > 5 {
				cancel()
			}
		}
	}()
	r, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Checks {
		if c.Held != (c.Name != "the run came to its end") {
			t.Errorf("%s", text(t, r))
		}
	}
}

func TestDefaultConcurrency(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rate    float64
		handler time.Duration
		workers int
		want    int
	}{
		{2000, 50 * time.Millisecond, 4, 48}, {5000, 50 * time.Millisecond, 6, 64}, {500, 50 * time.Millisecond, 4, 16}, {100, 0, 4, 16},
		{0, 50 * time.Millisecond, 4, 64},
	} {
		if got := DefaultConcurrency(row.rate, row.handler, row.workers); got != row.want {
			t.Errorf("%+v: %d", row, got)
		}
	}
}

// What grows is found, what is level is not, and what was not measured is not called level.
func TestGrowthIsFound(t *testing.T) {
	t.Parallel()
	r := run{published: 300 * time.Second, opts: Options{Workers: 4, Spared: 1, Groups: 1}}
	plots := func(value func(at time.Duration) float64) []report.Plot {
		var points []report.Point
		for at := time.Duration(0); at < 330*time.Second; at += time.Second {
			points = append(points, report.Point{At: at, V: value(at)})
		}
		return []report.Plot{{Title: plotMemory, Series: []report.Series{{Name: seriesMemory, Points: points}}}}
	}
	for name, row := range map[string]struct {
		value func(time.Duration) float64
		held  bool
	}{
		"level":            {func(time.Duration) float64 { return 50 << 20 }, true},
		"warms up":         {func(at time.Duration) float64 { return min(at.Seconds(), 60) * (1 << 20) }, true},
		"a peak":           {func(at time.Duration) float64 { return 50<<20 + max(0, at.Seconds()-290)*(1<<20) }, true},
		"grows":            {func(at time.Duration) float64 { return 50<<20 + at.Seconds()*(1<<20) }, false},
		"grows at the end": {func(at time.Duration) float64 { return 50<<20 + max(0, at.Seconds()-200)*(1<<20) }, false},
	} {
		if c := r.level(plots(row.value), name, plotMemory, seriesMemory, slackRedis, "bytes"); c.Held != row.held {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if c := r.level(nil, "nothing", plotMemory, seriesMemory, slackRedis, "bytes"); c.Held || !strings.Contains(c.Want, "last third") {
		t.Errorf("nothing was measured: %+v", c)
	}
}
