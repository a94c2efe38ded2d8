package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/bench/peer"
	"github.com/xstreamq/xstreamq/bench/report"
)

// childArg is the first argument of this binary when it is a child.
const childArg = "child"

// TestMain lets this binary be the children too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		if err := peer.Main(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func ourselves(t *testing.T) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, childArg}
}

// TestEverySystemOfGoRuns has each fill, drain and keep a rate, with few messages.
func TestEverySystemOfGoRuns(t *testing.T) {
	t.Parallel()
	r := Rig{
		Plan:  Plan{Rounds: 1, Length: 10 * time.Millisecond, PaceFor: 100 * time.Millisecond, Phases: []string{"drain", "latency"}},
		Child: ourselves(t), Log: io.Discard,
	}
	run, err := r.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Systems() {
		if s.Node {
			continue
		}
		for _, m := range []report.Measure{report.Drain1, report.Drain2} {
			for _, aof := range []bool{false, true} {
				result := run.Find(s.Name, m, aof)
				if (result != nil) != s.has(m) {
					t.Errorf("%s, %s, AOF %t: measured %t", s.Name, m, aof, result != nil)
				}
				if result != nil && (len(result.Samples) != 1 || result.Samples[0].Rate <= 0) {
					t.Errorf("%s, %s, AOF %t: %+v", s.Name, m, aof, result.Samples)
				}
			}
		}
	}
	if p50 := run.Find("xstreamq", report.Latency(2_000), false).Samples[0].P50; p50 <= 0 {
		t.Errorf("p50 of xstreamq is %gms", p50)
	}
	if missing := strings.Join(run.Missing, "; "); !strings.Contains(missing, "BullMQ") {
		t.Errorf("without Node, missing is %q", missing)
	}
}

// TestLostMessagesAreNoticed has a producer's messages taken away before the workers see them.
func TestLostMessagesAreNoticed(t *testing.T) {
	t.Parallel()
	srv, err := startServer(false)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.close()
	r := Rig{Child: ourselves(t), Log: io.Discard}
	s := Systems()[0]
	s.stored = [][]string{{"XTRIM", ourStream, "MAXLEN", "900"}, {"XLEN", ourStream}} // 100 taken away, 900 left: the producer's count holds
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if _, err := r.drain(ctx, srv, s, 1000, 1); err == nil || !strings.Contains(err.Error(), "900 of 1000 messages handled") {
		t.Errorf("got %v", err)
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	t.Parallel()
	for _, plan := range []Plan{{Systems: []string{"xstreamq", "nats"}}, {Phases: []string{"drian"}}} {
		r := Rig{Plan: plan, Log: io.Discard}
		if _, err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "there are") {
			t.Errorf("%+v: %v", plan, err)
		}
	}
}
