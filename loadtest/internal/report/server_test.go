package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

func TestServerWatch(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: "everysec"})
	o, err := resp.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var m Machine
	if err := m.AskServer(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(m.Redis, " ") || m.Persistence != "AOF everysec, no snapshots" {
		t.Errorf("%+v", m)
	}

	w := NewServerWatch(o, "orders", "a", "b")
	defer w.Close()
	// values by series, but that of the memory, which only has to be one.
	values := func() map[string]float64 {
		out := make(map[string]float64)
		for _, r := range w.Probe(t.Context()) {
			out[r.Plot+" "+r.Series] = r.V
		}
		if len(out) > 0 && out["memory of Redis used_memory"] < 1<<18 {
			t.Errorf("memory: %v", out)
		}
		delete(out, "memory of Redis used_memory")
		return out
	}
	want := map[string]float64{"entries queue": 0, "entries a.retry": 0, "entries a.dlq": 0, "entries b.retry": 0, "entries b.dlq": 0}
	if diff := cmp.Diff(want, values()); diff != "" {
		t.Errorf("an empty server: %s", diff)
	}
	do(t, o, "XADD {orders} * body 1", "XADD {orders} * body 2", "XADD {orders}.b.dlq * body 1",
		"XGROUP CREATE {orders} a 0", "XGROUP CREATECONSUMER {orders} a x", "XGROUP CREATECONSUMER {orders} a y",
		"XGROUP CREATE {orders}.a.retry a-retry 0 MKSTREAM")
	want["entries queue"], want["entries b.dlq"], want["consumers a"], want["consumers a-retry"] = 2, 1, 2, 0
	if diff := cmp.Diff(want, values()); diff != "" {
		t.Error(diff)
	}
	server.Kill()
	if got := values(); len(got) != 0 {
		t.Errorf("from a dead server: %v", got)
	}
	if err := m.AskServer(t.Context(), o); err == nil {
		t.Error("a dead server said something")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 20*time.Second, "values of the new server", func() bool { return len(values()) >= 5 })
}

func do(t *testing.T, o resp.Options, commands ...string) {
	t.Helper()
	c, err := resp.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, command := range commands {
		if _, err := c.Do(strings.Fields(command)...); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
}

// A server without CONFIG is described all the same.
func TestServerWithoutConfig(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--rename-command", "CONFIG", ""}})
	o, err := resp.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var m Machine
	if err := m.AskServer(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if m.Redis == "" || m.Persistence != "AOF unknown, snapshots unknown" {
		t.Errorf("%+v", m)
	}
}

func TestGaugeProbe(t *testing.T) {
	t.Parallel()
	known := true
	probe := GaugeProbe("backlog", "messages", "all", func() (float64, bool) { return 7, known })
	if got := probe(t.Context()); !slices.Equal(got, []Reading{{"backlog", "messages", "all", 7}}) {
		t.Error(got)
	}
	known = false
	if got := probe(t.Context()); got != nil {
		t.Error(got)
	}
}
