package xstreamq_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// sentinelSet is the name under which the sentinels know the master.
const sentinelSet = "queues"

// How long a master is silent before a sentinel calls it down, in ms: when it is to fail, and else. A busy machine keeps a healthy
// server silent for a second.
const (
	sentinelAlert = "1000"
	sentinelCalm  = "60000"
)

// sentinelRig is a master, its replica, and three sentinels that watch them.
type sentinelRig struct {
	*faultRig // looks at the replica: after a failover it is the master

	master, replica *redistest.Server
	sentinels       []*redistest.Server
}

func newSentinelRig(t *testing.T) *sentinelRig {
	t.Helper()
	r := &sentinelRig{}
	r.master = redistest.Start(t, redistest.Options{
		AOF: "everysec", Dir: faultFastDir(t), Args: []string{"--repl-diskless-sync-delay", "0"},
	})
	host, port := serverAddr(t, r.master)
	r.replica = redistest.Start(t, redistest.Options{
		AOF: "everysec", Dir: faultFastDir(t), Args: []string{"--replicaof", host, port},
	})
	r.faultRig = newFaultRig(t, r.replica)
	serverReplicates(t, r.faultRig)
	var addrs []string
	for range 3 {
		dir := t.TempDir()
		file := filepath.Join(dir, "sentinel.conf")
		lines := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 2\nsentinel down-after-milliseconds %[1]s %[4]s\n"+
			"sentinel failover-timeout %[1]s 3000\n", sentinelSet, host, port, sentinelCalm)
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		s := redistest.Start(t, redistest.Options{Dir: dir, File: file, Args: []string{"--sentinel"}})
		r.sentinels, addrs = append(r.sentinels, s), append(addrs, s.Addr())
	}
	r.url = "redis://" + addrs[0] + "?addr=" + addrs[1] + "&addr=" + addrs[2] + "&master_set=" + sentinelSet
	for _, s := range r.sentinels {
		c := redistest.Dial(t, s.URL())
		redistest.WaitFor(t, faultPatience, "sentinels that know each other and the replica", func() bool {
			about, err := c.Do(t.Context(), c.B().Arbitrary("SENTINEL", "MASTER", sentinelSet).Build()).AsStrMap()
			return err == nil && about["num-other-sentinels"] == "2" && about["num-slaves"] == "1" && about["flags"] == "master"
		})
	}
	return r
}

// sentinel sends one command to a sentinel.
func (r *sentinelRig) sentinel(s *redistest.Server, words ...string) {
	r.t.Helper()
	c := redistest.Dial(r.t, s.URL())
	if err := c.Do(r.t.Context(), c.B().Arbitrary(words...).Build()).Error(); err != nil {
		r.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
}

// patience sets how long a server may be silent.
func (r *sentinelRig) patience(ms string) {
	r.t.Helper()
	for _, s := range r.sentinels {
		r.sentinel(s, "SENTINEL", "SET", sentinelSet, "down-after-milliseconds", ms)
	}
}

// failover has the sentinels replace the master.
func (r *sentinelRig) failover() {
	r.t.Helper()
	r.sentinel(r.sentinels[0], "SENTINEL", "FAILOVER", sentinelSet)
}

// promoted waits until the replica is a master, and returns when that was seen.
func (r *sentinelRig) promoted() time.Time {
	r.t.Helper()
	redistest.WaitFor(r.t, faultPatience, "a promoted replica", func() bool { return serverRole(r.faultRig) == "master" })
	return time.Now()
}

// lostBy sorts messages whose publish was acknowledged, by body, into those that Redis lost and those that the engine did. The
// queue's stream is kept whole for that: what is not in it never came to this server.
func (r *faultRig) lostBy(stored map[string]string) (redis, engine []string) {
	r.t.Helper()
	kept := map[string]string{}
	for _, e := range faultEntries(r.do("XRANGE", r.keys.Queue, "-", "+")) {
		kept[e.id] = strings.Trim(e.fields["body"], `"`)
	}
	places := r.places()
	for body, id := range stored {
		switch {
		case r.runs.get(body).succeeded > 0 || len(places.at[id]) == 1:
		case kept[id] == body:
			engine = append(engine, id)
		default:
			redis = append(redis, id)
		}
	}
	return redis, engine
}

// serverWaited publishes from the outside of the engine, by the contract, and counts a message as stored when the replica has it.
func serverWaited(ctx context.Context, rc rueidis.Client, k keys.Set, body string) (id string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_ = rc.Dedicated(func(c rueidis.DedicatedClient) error {
		both := c.DoMulti(ctx,
			c.B().Xadd().Key(k.Queue).Id("*").FieldValue().FieldValue("body", `"`+body+`"`).Build(),
			c.B().Wait().Numreplicas(1).Timeout(1000).Build())
		var err error
		if id, err = both[0].ToString(); err != nil {
			return err
		}
		n, err := both[1].AsInt64()
		ok = err == nil && n > 0
		return err
	})
	return id, ok
}

func serverAddr(t *testing.T, s *redistest.Server) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// serverRole is what the rig's server says it is: master or slave.
func serverRole(r *faultRig) string {
	r.t.Helper()
	role, err := r.try("ROLE")
	if err != nil {
		return ""
	}
	parts, _ := role.ToArray()
	if len(parts) == 0 {
		return ""
	}
	s, _ := parts[0].ToString()
	return s
}

// serverReplicates waits until the rig's server is a replica that has all of its master.
func serverReplicates(t *testing.T, r *faultRig) {
	t.Helper()
	redistest.WaitFor(t, faultPatience, "a replica in step", func() bool {
		reply := r.do("INFO", "replication")
		info, _ := reply.ToString()
		return strings.Contains(info, "master_link_status:up") && strings.Contains(info, "master_sync_in_progress:0")
	})
}
