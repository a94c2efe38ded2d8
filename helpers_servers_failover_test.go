package xstreamq_test

import (
	"maps"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// resumeWithin is how long after the promotion of a replica its first message may wait to be handled, when nothing else keeps the
// machine busy; resumeSlack is what else may.
const (
	resumeWithin = 5 * time.Second
	resumeSlack  = 5 * time.Second
)

// failover is a master that fails under load and a replica that takes its place.
type failover struct {
	*faultRig // looks at the replica
	master    *redistest.Server
	limit     time.Duration // for the first message after the promotion
	fail      func()
	calm      func() // after the promotion: no further one, please
	// waited publishes what WAIT confirmed.
	waited func() *faultLoad
	// doomed are messages, by body, that only the old master ever had.
	doomed map[string]string
}

// run has the master replaced while messages are published and handled, and lets it come back.
func (f *failover) run(t *testing.T) {
	t.Helper()
	f.config = func(cfg *xstreamq.Config) { cfg.Retain = -1 }
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: 10 * time.Second, Backoff: faultQuick}
	a, q := f.worker(opts, faultFlaky)
	b, _ := f.worker(opts, faultFlaky)
	_, out := f.client() // publishes only
	loads := []*faultLoad{f.load(q, 2, ""), f.load(out, 2, "only-")}
	waited := f.waited()
	redistest.WaitFor(t, faultPatience, "progress", func() bool { return f.runs.succeeded() >= 500 })

	f.fail()
	redistest.WaitFor(t, faultPatience, "a promoted replica", func() bool { return serverRole(f.faultRig) == "master" })
	f.resumes(t, loads)
	f.calm()
	f.progress("progress after the failover")

	// The old master comes back, as what the others make of it.
	if !f.master.Alive() {
		if err := f.master.Restart(); err != nil {
			return
		}
	}
	f.master.Resume()
	old := newFaultRig(t, f.master)
	redistest.WaitFor(t, faultPatience, "the old master to be a replica", func() bool { return serverRole(old) == "slave" })
	f.progress("progress with both servers")

	ids := map[string]string{}
	for _, load := range loads {
		load.end()
		maps.Copy(ids, load.ids)
	}
	sure := waited.end()
	dead := f.drained()
	byRedis, byEngine := f.lostBy(ids)
	t.Logf("%d messages acknowledged, %d of them lost by Redis: %v", len(ids), len(byRedis), byRedis)
	t.Logf("%d messages that the replica had confirmed", len(sure))
	if len(byEngine) > 0 {
		t.Errorf("%d messages are in the queue, and were neither handled nor are they anywhere else: %v", len(byEngine), byEngine)
	}
	byRedis, byEngine = f.lostBy(waited.ids)
	if len(byRedis)+len(byEngine) > 0 {
		t.Errorf("lost although the replica had them: %v %v", byRedis, byEngine)
	}
	byRedis, byEngine = f.lostBy(f.doomed)
	if len(byRedis) != len(f.doomed) {
		t.Errorf("of %v only %v count as lost by Redis, and %v as lost by the engine", f.doomed, byRedis, byEngine)
	}
	if twice := f.places().twice(); len(twice) > 0 {
		t.Errorf("in two places: %v", twice)
	}
	f.unharmed(dead)
	for _, c := range []*xstreamq.Client{a, b} {
		f.healthy(c)
		if took, err := stopWithin(c, faultPatience); err != nil || took > 4*time.Second { // a blocked read takes 5 s
			t.Errorf("Stop: %v after %v", err, took)
		}
	}
}

// resumes measures how soon after the promotion a message of somebody else is handled, and how soon each load publishes.
func (f *failover) resumes(t *testing.T, loads []*faultLoad) {
	t.Helper()
	promoted := time.Now()
	before := make([]int, len(loads))
	for i, load := range loads {
		before[i] = load.count()
	}
	for try := 0; ; try++ {
		// A server that was just promoted may have to learn first that the cluster has a master for each slot again.
		if _, err := f.try("XADD", f.keys.Queue, "*", "body", `"first"`); err == nil {
			break
		} else if try > 100 {
			t.Fatal(err)
		}
		f.wait(faultPause)
	}
	published := make([]time.Duration, len(loads))
	var resumed time.Duration
	redistest.WaitFor(t, faultPatience, "a message handled, and published by each client", func() bool {
		if resumed == 0 && f.runs.get("first").succeeded > 0 {
			resumed = time.Since(promoted)
		}
		all := resumed > 0
		for i, load := range loads {
			if published[i] == 0 && load.count() > before[i] {
				published[i] = time.Since(promoted)
			}
			all = all && published[i] > 0
		}
		return all
	})
	t.Logf("after the promotion: handled again %v, published again %v", resumed.Round(time.Millisecond), published)
	if worst := max(resumed, published[0], published[1]); worst > f.limit+resumeSlack {
		t.Errorf("it took %v after the promotion until a message was handled and each client had published, want at most %v", worst, f.limit)
	}
}

func (f *failover) progress(what string) {
	f.t.Helper()
	before := f.runs.succeeded()
	redistest.WaitFor(f.t, faultPatience, what, func() bool { return f.runs.succeeded() >= before+500 })
}
