package xstreamq_test

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// clusterRounds is how often each slot moves: over all nodes, and round again.
const clusterRounds = 9

// P1, P5, P9: the slots of three queues, one on each master at first, move from node to node while messages are published and
// handled. Each acknowledged publish is handled, nothing is dead, left or in two places, no lease counts as lost, and Stop is quick.
func TestSlotsMoveUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: moving slots under load takes a quarter of a minute, and -short was asked for")
	}
	t.Parallel()
	c := startCluster(t, 3)
	log := newFaultLog()
	var rigs []*faultRig
	var owners []*clusterNode
	for i := 0; len(rigs) < len(c.nodes); i++ {
		name := fmt.Sprintf("q%d", i)
		if _, owner, _ := c.slot("{" + name + "}"); !slices.Contains(owners, owner) {
			owners = append(owners, owner)
			rigs = append(rigs, &faultRig{t: t, keys: keys.ForGroup("", name, faultGroup), log: log, runs: newFaultRuns()})
		}
	}
	var clients []*xstreamq.Client
	queues := make([]*xstreamq.Queue[string], len(rigs))
	for range 2 {
		client, err := xstreamq.Open(c.nodes[0].server.URL(), xstreamq.Config{Logger: slog.New(log), CompactEvery: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		for i, rig := range rigs {
			queues[i] = stopQueue(t, client, clusterName(rig))
			_, err := queues[i].Subscribe(faultGroup, rig.runs.record(faultFlaky), xstreamq.SubscribeOptions{Backoff: faultQuick})
			if err != nil {
				t.Fatal(err)
			}
		}
		stopStart(t, client)
		clients = append(clients, client)
	}
	var later []string
	var loads []*faultLoad
	for i, rig := range rigs {
		loads = append(loads, rig.load(queues[i], 2))
	}
	for round := range clusterRounds {
		for i, rig := range rigs {
			body := fmt.Sprintf("later-%d", round)
			if _, err := queues[i].Publish(t.Context(), body, xstreamq.WithDelay(time.Second)); err == nil && i == 0 {
				later = append(later, body)
			}
			before := rig.runs.succeeded()
			redistest.WaitFor(t, faultPatience, "progress", func() bool { return rig.runs.succeeded() >= before+100 })
			c.move("{" + clusterName(rig) + "}")
		}
	}
	for _, code := range []string{"MOVED", "ASK", "TRYAGAIN"} {
		n := c.refused(code)
		t.Logf("%s was answered %d times", code, n)
		if n == 0 {
			t.Errorf("%s was never answered: the moves hit nothing", code)
		}
	}
	for i, rig := range rigs {
		stored := loads[i].end()
		if i == 0 {
			stored = append(stored, later...)
		}
		_, owner, _ := c.slot(rig.keys.Queue)
		rig.redis = owner.admin
		rig.handled(stored)
		rig.unharmed(rig.drained())
		again := 0
		for _, run := range rig.runs.all() {
			if run.succeeded > 1 {
				again++
			}
		}
		t.Logf("%s: %d messages acknowledged, %d handled again, after %d moves", clusterName(rig), len(stored), again, clusterRounds)
	}
	for _, client := range clients {
		rigs[0].healthy(client)
		if took, err := stopWithin(client, clusterWait); err != nil || took > 4*time.Second { // a blocked read takes 5 s
			t.Errorf("Stop: %v after %v", err, took)
		}
	}
}

func clusterName(r *faultRig) string { return r.keys.Queue[1 : len(r.keys.Queue)-1] }
