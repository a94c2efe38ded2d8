package load

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

// asWorker makes the test binary a worker process.
const asWorker = "XSTREAMQ_LOADTEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(asWorker) != "" {
		if err := worker.Process(os.Stdin, os.Stdout, os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func newTestRig(t *testing.T, change func(*Options)) *Rig {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	o, err := resp.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{
		Server: o, Command: []string{self}, Env: []string{asWorker + "=1"}, Worker: worker.Options{URL: server.URL()},
		Dir: t.TempDir(), Body: 128, Connections: 2, Workers: 2, Rate: 500, Duration: time.Second, Messages: 3000,
	}
	change(&opts)
	r := NewRig(opts)
	t.Cleanup(func() {
		c, err := resp.Dial(context.WithoutCancel(t.Context()), o)
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if left, err := c.Do("KEYS", "*"); err != nil || len(left.Items) > 0 {
			t.Errorf("the server still holds %v, %v", left, err)
		}
		if left, err := os.ReadDir(opts.Dir); err != nil || len(left) > 1 {
			t.Errorf("the folder still holds %v, %v", left, err)
		}
	})
	return r
}

// Each phase sees what really happened: nothing is lost, the latency is of every message, and rates are plausible.
func TestOnce(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, func(*Options) {})
	out, err := r.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Published) != 1 || out.Published[0].Acked < 100 || out.Published[0].Took < time.Second {
		t.Errorf("published: %+v", out.Published)
	}
	if len(out.Drained) != 1 || out.Drained[0].Messages > 3000 || out.Drained[0].Workers != 2 {
		t.Errorf("drained: %+v", out.Drained)
	}
	if len(out.Carried) != 1 {
		t.Fatalf("carried: %+v", out.Carried)
	}
	c := out.Carried[0]
	if c.Acked > 500 || c.Latency.N != c.Acked || c.Latency.P50 <= 0 || c.Latency.P50 > c.Latency.Max || len(c.Backlog) < 3 {
		t.Errorf("carried: %+v", c)
	}
	tally := r.Tally()
	if want := (Tally{Acknowledged: 3000 + c.Acked, Handled: 3000 + c.Acked}); tally != want {
		t.Errorf("tally %+v, want %+v", tally, want)
	}

	rep := report.Report{Command: "load"}
	out.Fill(&rep)
	if len(rep.Tables) != 3 || len(rep.Latency) != 1 || len(rep.Plots) != 3 || len(rep.Curves) != 0 {
		t.Errorf("report: %d tables, %d latencies, %d plots, %d curves", len(rep.Tables), len(rep.Latency), len(rep.Plots), len(rep.Curves))
	}
}

// Without a rate the producer goes as fast as it can, and all is handled in the end.
func TestAsFastAsPossible(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, func(o *Options) { o.Rate = 0; o.Duration = 300 * time.Millisecond; o.Workers = 1 })
	out := &Results{}
	if err := r.carry(t.Context(), out, 0); err != nil {
		t.Fatal(err)
	}
	c, tally := out.Carried[0], r.Tally()
	if c.Acked < 50 || c.Latency.N != c.Acked || tally.Handled != c.Acked || c.Took < 300*time.Millisecond {
		t.Errorf("%+v, %+v", c, tally)
	}
	if row := c.row(); row[0] != "all" || row[len(row)-1] != "-" {
		t.Errorf("row %q", row)
	}
}

// An interruption ends a phase at once, with the workers gone.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, func(o *Options) { o.Duration = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- r.carry(ctx, &Results{}, 500)
	}()
	redistest.WaitFor(t, 30*time.Second, "messages are handled", func() bool { return r.Progress().Handled > 0 })
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
	if pids := r.PIDs(); len(pids) > 0 {
		t.Errorf("workers %v", pids)
	}
}

// Workers that cannot work are an error which says why, not a wait.
func TestWorkersThatEnd(t *testing.T) {
	t.Parallel()
	r := newTestRig(t, func(o *Options) {
		o.Command, o.Workers = []string{"sh", "-c", "read options; echo what went wrong >&2; exit 3"}, 1
	})
	err := r.carry(t.Context(), &Results{}, 500)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"end to end, 500/s", "ended by itself: exit status 3", "what went wrong"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
}
