package report

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestMemoryOfThisProcess(t *testing.T) {
	t.Parallel()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	probe := MemoryProbe(func() map[string]int { return map[string]int{"this": os.Getpid(), "ended": ended.Process.Pid} })
	got := probe(t.Context())
	if len(got) != 1 || got[0].Series != "this" || got[0].Unit != "bytes" || got[0].V < 1<<20 || got[0].V > 1<<32 {
		t.Errorf("%+v", got)
	}
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: only Linux has /proc/self/status to compare with")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var kib float64
	if _, err := fmt.Sscan(string(regexp.MustCompile(`(?m)^VmRSS:(.*) kB$`).FindSubmatch(status)[1]), &kib); err != nil {
		t.Fatal(err)
	}
	// Tests beside this one make it grow and shrink between the two looks.
	if ratio := got[0].V / (kib * 1024); ratio < 0.5 || ratio > 2 {
		t.Errorf("%v bytes, the kernel says %v KiB", got[0].V, kib)
	}
}

// Series come and go: what is missing is a gap, what begins late has no past.
func TestSampler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n int
		values := func(context.Context) []Reading {
			n++
			out := []Reading{{Plot: "memory", Unit: "bytes", Series: "a", V: float64(n)}}
			if n == 2 || n == 5 {
				out = append(out, Reading{Plot: "memory", Unit: "bytes", Series: "b", V: float64(10 * n)})
			}
			return out
		}
		rate := RateProbe("handled", "messages/s", "all", func() int64 { return int64(100 * n) })
		s := StartSampler(t.Context(), 0, values, rate)
		time.Sleep(4*time.Second + time.Millisecond)
		got := s.Stop()
		want := []Plot{
			{Title: "memory", Unit: "bytes", Series: []Series{
				{"a", []Point{{0, 1}, {1e9, 2}, {2e9, 3}, {3e9, 4}, {4e9, 5}}},
				{"b", []Point{{1e9, 20}, {2e9, math.NaN()}, {4e9, 50}}},
			}},
			{Title: "handled", Unit: "messages/s", Series: []Series{{"all", []Point{{1e9, 100}, {2e9, 100}, {3e9, 100}, {4e9, 100}}}}},
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" {
			t.Error(diff)
		}
	})
}

// A run of any length keeps a bounded number of samples, evenly spread.
func TestSamplerThinsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := StartSampler(t.Context(), time.Second, func(context.Context) []Reading { return []Reading{{Plot: "p", Series: "s"}} })
		time.Sleep(24 * time.Hour)
		points := s.Stop()[0].Series[0].Points
		if len(points) < mostSamples/2-1 || len(points) >= mostSamples {
			t.Errorf("%d points", len(points))
		}
		gaps := make(map[time.Duration]int)
		for i := 1; i < len(points); i++ {
			gaps[points[i].At-points[i-1].At]++
		}
		if len(gaps) != 1 || points[0].At != 0 {
			t.Errorf("distances %v from %v", gaps, points[0].At)
		}
	})
}

// A server that hangs costs one interval, and the other probes are read.
func TestSamplerBoundsAProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hanging := func(ctx context.Context) []Reading {
			<-ctx.Done()
			return nil
		}
		healthy := func(context.Context) []Reading { return []Reading{{Plot: "p", Series: "s", V: 1}} }
		s := StartSampler(t.Context(), time.Second, hanging, healthy)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		got := s.Stop()
		if len(got) != 1 || len(got[0].Series[0].Points) < 8 {
			t.Errorf("%s", fmt.Sprint(got))
		}
	})
}
