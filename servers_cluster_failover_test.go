package xstreamq_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// How long a node of a cluster is silent before the others replace it, in ms: when it is to fail, and else.
const (
	clusterAlert = "1500"
	clusterCalm  = "60000"
)

// clusterRig is a cluster of three masters, and a replica of the one that has the queue.
type clusterRig struct {
	*faultRig // looks at the replica

	cluster         *cluster
	master, replica *clusterNode
}

func newClusterRig(t *testing.T) *clusterRig {
	t.Helper()
	c := startCluster(t, 3)
	r := &clusterRig{cluster: c}
	_, r.master, _ = c.slot("{" + faultQueue + "}")
	r.replica = c.replica(r.master, 3)
	c.patience(clusterCalm, nil)
	r.faultRig = newFaultRig(t, r.replica.server)
	r.redis = r.replica.admin
	return r
}

// other is a master that has not the queue.
func (r *clusterRig) other() *clusterNode {
	if r.cluster.nodes[0] == r.master {
		return r.cluster.nodes[1]
	}
	return r.cluster.nodes[0]
}

// P1, P5, P9: a cluster replaces the master of the queue's slot while messages are published and handled. Publishing and consuming go
// on within seconds of the promotion; whatever the new master has is handled and in no second place; what only the old one had is
// lost by Redis, and named. What the replica had confirmed is never lost.
func TestClusterFailoverUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: failovers take half a minute, and -short was asked for")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		fail   func(s *redistest.Server)
		own    bool // the clients were opened with the address of the master that fails
		behind bool // the replica lacks the last writes
	}{
		"killed":                 {fail: (*redistest.Server).Kill},
		"killed, replica behind": {fail: (*redistest.Server).Kill, behind: true},
		"stopped":                {fail: (*redistest.Server).Pause},
		"stopped, address known": {fail: (*redistest.Server).Pause, own: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newClusterRig(t)
			r.url = r.other().server.URL()
			if c.own {
				r.url = r.master.server.URL()
			}
			f := failover{
				faultRig: r.faultRig, master: r.master.server, limit: resumeWithin, waited: r.loadWaited,
				doomed: map[string]string{},
				calm:   func() { r.cluster.patience(clusterCalm, r.master) },
			}
			f.fail = func() {
				r.cluster.patience(clusterAlert, nil)
				if c.behind {
					r.replica.server.Pause()
					defer r.replica.server.Resume()
					r.master.do("CLIENT", "KILL", "TYPE", "replica")
					_, q := r.client()
					for i := range 5 {
						body := fmt.Sprintf("doomed-%d", i)
						id, err := q.Publish(t.Context(), body, xstreamq.WithDelay(time.Hour))
						if err != nil {
							t.Fatal(err)
						}
						f.doomed[body] = id
					}
				}
				c.fail(r.master.server)
			}
			f.run(t)
		})
	}
}

// P9: a worker has nothing to do, so its reads are blocked on the master that stops.
func TestClusterFailoverUnderABlockedRead(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: failovers take half a minute, and -short was asked for")
	}
	t.Parallel()
	r := newClusterRig(t)
	r.url = r.other().server.URL()
	a, q := r.worker(xstreamq.SubscribeOptions{VisibilityTimeout: 10 * time.Second}, faultFlaky)
	r.publish(q, "before")
	r.handled([]string{"before"})
	clusterAllBlocked(t, r.cluster, 2)
	r.cluster.patience(clusterAlert, nil)
	r.master.server.Pause()
	redistest.WaitFor(t, faultPatience, "a promoted replica", func() bool { return serverRole(r.faultRig) == "master" })
	promoted := time.Now()
	redistest.WaitFor(t, faultPatience, "a publish", func() bool {
		_, err := r.try("XADD", r.keys.Queue, "*", "body", `"after"`)
		return err == nil
	})
	r.handled([]string{"after"})
	resumed := time.Since(promoted)
	t.Logf("handled again %v after the promotion", resumed.Round(time.Millisecond))
	if resumed > resumeWithin+resumeSlack {
		t.Errorf("it took %v after the promotion until a message was handled, want at most %v", resumed, resumeWithin)
	}
	r.cluster.patience(clusterCalm, r.master)
	r.master.server.Resume()
	old := newFaultRig(t, r.master.server)
	redistest.WaitFor(t, faultPatience, "the old master to be a replica", func() bool { return serverRole(old) == "slave" })
	r.publish(q, "with both")
	r.handled([]string{"with both"})
	r.unharmed(r.drained())
	r.healthy(a)
	if took, err := stopWithin(a, faultPatience); err != nil || took > 4*time.Second {
		t.Errorf("Stop: %v after %v", err, took)
	}
}
