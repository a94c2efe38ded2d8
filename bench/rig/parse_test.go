package rig

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/bench/peer"
	"github.com/xstreamq/xstreamq/bench/report"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	stat := "42 (a) b (c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 5 0 1 2 3"
	cpu, err := parseStat([]byte(stat))
	if err != nil || cpu != 3*time.Second {
		t.Errorf("got %v, %v, want 3s", cpu, err)
	}
	if _, err := parseStat([]byte("42 (a) S 1")); err == nil {
		t.Error("a line that is too short was taken")
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	rss, err := parseStatus("Name:\ta\nVmPeak:\t  999999 kB\nVmHWM:\t   30720 kB\n")
	if err != nil || rss != 30 {
		t.Errorf("got %g, %v, want 30", rss, err)
	}
	if _, err := parseStatus("Name:\ta\n"); err == nil {
		t.Error("a process that has ended was taken")
	}
}

func TestParseBenchmark(t *testing.T) {
	t.Parallel()
	text := `"test","rps","avg_latency_ms"` + "\n" + `"XADD {bench} * body xxx","98765.43","0.55"` + "\n"
	rate, err := parseBenchmark(text)
	if err != nil || rate != 98765.43 {
		t.Errorf("got %g, %v", rate, err)
	}
	for _, other := range []string{"", "WARNING: no config\n", `"test","p50"` + "\n" + `"XADD","1"` + "\n"} {
		if _, err := parseBenchmark(other); err == nil {
			t.Errorf("%q was taken", other)
		}
	}
}

func TestCheckOnce(t *testing.T) {
	t.Parallel()
	if err := checkOnce(peer.Event{Handled: 4, Sum: 6}, 4); err != nil {
		t.Error(err)
	}
	for what, e := range map[string]peer.Event{
		"one lost":                    {Handled: 3, Sum: 3},
		"one twice":                   {Handled: 5, Sum: 9},
		"one lost, another one twice": {Handled: 4, Sum: 5},
	} {
		if err := checkOnce(e, 4); !errors.Is(err, errCount) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestBehind(t *testing.T) {
	t.Parallel()
	cmd := peer.Command{Messages: 1000, Rate: 1000} // a second
	const second = int64(time.Second)
	for _, c := range []struct {
		published, handled time.Duration // after the first publish
		want               string
	}{
		{time.Second, time.Second, ""},
		{time.Second + mostBehind, time.Second + 2*mostBehind, ""},
		{1200 * time.Millisecond, 1200 * time.Millisecond, "stored 200ms late"},
		{time.Second, 1300 * time.Millisecond, "handled 300ms after"},
	} {
		published := peer.Event{First: second, Last: second + int64(c.published)}
		got := behind(cmd, published, peer.Event{Last: second + int64(c.handled)})
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("stored after %v, handled after %v: %q, want %q", c.published, c.handled, got, c.want)
		}
	}
}

func TestLatenciesLeaveOutTheFirstTenth(t *testing.T) {
	t.Parallel()
	micros := make([]int32, 1000)
	for i := range micros {
		micros[i] = 1000
		if i < 100 {
			micros[i] = 1_000_000
		}
	}
	micros[999] = 5000
	var s report.Sample
	latencies(&s, micros)
	if s.P50 != 1 || s.P99 != 1 || s.P999 != 5 {
		t.Errorf("got %g, %g, %g", s.P50, s.P99, s.P999)
	}
}

func TestSystemsAreToldApart(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range append(Systems(), rawRuns()...) {
		if s.Name == "" || s.Title == "" || s.Settings == "" || s.Kind == "" || seen[s.Name] {
			t.Errorf("%+v: a name, title, kind or settings are missing, or the name is there twice", s.System)
		}
		seen[s.Name] = true
	}
	for _, name := range peer.Systems() {
		if !seen[name] {
			t.Errorf("%s can be run but is in no row", name)
		}
	}
}

func TestBusy(t *testing.T) {
	t.Parallel()
	for loadavg, want := range map[string]bool{"0.50 9 9 1/2 3": false, "0.51 0 0 1/2 3": true, "unknown": false, "": false} {
		if got := busy(loadavg, 2); (got != "") != want {
			t.Errorf("load average %q on 2 CPUs: %q", loadavg, got)
		}
	}
}
