package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

const patience = 30 * time.Second

// workers start a shell that does what a worker does as far as this package sees it.
func workers(t *testing.T, script string, change func(*Options)) *Workers {
	t.Helper()
	o := Options{
		Command: []string{"sh", "-c", script}, Workers: 3, Log: filepath.Join(t.TempDir(), "log"), Env: []string{"TOLD_BY_TEST=yes"},
	}
	if change != nil {
		change(&o)
	}
	w, err := StartWorkers(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Stop(0) })
	return w
}

// idle tells a status, and ends with its input.
const idle = `echo '{"Goroutines": 7}'; echo "env $TOLD_BY_TEST" >&2; exec cat >/dev/null`

// kill kills a worker; a killed one is replaced in its own time.
func kill(t *testing.T, w *Workers) {
	t.Helper()
	redistest.WaitFor(t, patience, "a worker to kill", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.victim() != nil
	})
	w.Kill()
}

func TestKilledWorkersAreReplaced(t *testing.T) {
	t.Parallel()
	w := workers(t, idle, func(o *Options) { o.Spared = 1 })
	spared := w.Seen()[Name(0)].PID
	const kills = 12
	for range kills {
		kill(t, w)
	}
	redistest.WaitFor(t, patience, "three workers with a status", func() bool {
		told := 0
		for _, s := range w.Seen() {
			if s.Status.Goroutines == 7 {
				told++
			}
		}
		return told == 3
	})
	runs := map[int]bool{}
	for _, e := range w.Events() {
		if e.Kind != fault.Kill || e.To.Before(e.From) || e.Run == 1 || runs[e.Run] {
			t.Errorf("an event is %+v", e)
		}
		runs[e.Run] = true
	}
	if len(runs) != kills {
		t.Errorf("%d of %d kills were noted", len(runs), kills)
	}
	if w.Seen()[Name(0)].PID != spared || !w.Seen()[Name(0)].Spared {
		t.Error("the worker that is left alone was killed")
	}
	if err := w.Stop(patience); err != nil {
		t.Error(err)
	}
	if crashes := w.Crashes(); len(crashes) > 0 {
		t.Errorf("%q", crashes)
	}
	log, err := os.ReadFile(w.opts.Log)
	if err != nil || !strings.Contains(string(log), "env yes") {
		t.Errorf("the log holds %q, %v", log, err)
	}
}

func TestStoppedWorkerIsNoVictim(t *testing.T) {
	t.Parallel()
	w := workers(t, idle, func(o *Options) { o.Workers = 2 })
	ctx, cancel := context.WithCancel(t.Context())
	stood := make(chan struct{})
	go func() {
		defer close(stood)
		w.StopFor(ctx, time.Hour)
	}()
	redistest.WaitFor(t, patience, "a worker that stands still", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.slots[0].stopped || w.slots[1].stopped
	})
	for range 3 {
		kill(t, w)
	}
	cancel()
	<-stood
	events := w.Events()
	if len(events) != 4 || events[3].Kind != fault.Stop {
		t.Fatalf("the events are %+v", events)
	}
	for _, e := range events[:3] {
		if e.Run == events[3].Run || e.Kind != fault.Kill {
			t.Errorf("%+v hit the worker that stood still, %+v", e, events[3])
		}
	}
	if err := w.Stop(patience); err != nil {
		t.Error(err)
	}
}

// A worker that ends by itself is told of; when all do, that has an end.
func TestWorkersThatFail(t *testing.T) {
	t.Parallel()
	w := workers(t, "read line; exit 3", func(o *Options) { o.Workers = 1 })
	select {
	case <-w.Hopeless():
	case <-time.After(patience):
		t.Fatal("it goes on for ever")
	}
	if err := w.Stop(patience); err != nil {
		t.Error(err)
	}
	if crashes := w.Crashes(); len(crashes) != maxCrashes || !strings.Contains(crashes[0], "worker 1 ended by itself: exit status 3") {
		t.Errorf("%q", crashes)
	}
}

func TestWorkerThatDoesNotStopIsKilled(t *testing.T) {
	t.Parallel()
	w := workers(t, "exec sleep 1000", nil)
	err := w.Stop(10 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "worker 1 did not end within 10ms") {
		t.Errorf("Stop: %v", err)
	}
	if err := w.Stop(patience); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

func TestWorkersWithoutProgram(t *testing.T) {
	t.Parallel()
	_, err := StartWorkers(Options{Command: []string{"/does/not/exist"}, Workers: 2, Log: filepath.Join(t.TempDir(), "log")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestServerKeepsItsDataThroughCrashes(t *testing.T) {
	t.Parallel()
	s, err := StartServer(t.TempDir(), "always")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	o, err := resp.ParseURL(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) resp.Value {
		t.Helper()
		c, err := resp.Dial(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		v, err := c.Do(args...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	ask("SET", "key", "kept")
	for range 2 {
		if err := s.Crash(); err != nil {
			t.Fatal(err)
		}
	}
	if v := ask("GET", "key"); v.Text != "kept" {
		t.Errorf("the key holds %+v", v)
	}
	events := s.Events()
	if len(events) != 2 || events[1].Kind != fault.Outage || !events[1].From.After(events[0].To) {
		t.Errorf("the events are %+v", events)
	}
}

func TestEvery(t *testing.T) {
	t.Parallel()
	n := 0
	enough := errors.New("enough")
	if err := Every(t.Context(), time.Millisecond, func(context.Context) error {
		if n++; n == 3 {
			return enough
		}
		return nil
	}); !errors.Is(err, enough) || n != 3 {
		t.Errorf("%d calls, %v", n, err)
	}
	never := func(context.Context) error { return enough }
	if err := Every(t.Context(), 0, never); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Every(ended, time.Millisecond, never); err != nil {
		t.Error(err)
	}
}
