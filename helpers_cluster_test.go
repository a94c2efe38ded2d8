package xstreamq_test

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// clusterWait is for what takes a moment on an idle machine: also for the nodes to agree.
const clusterWait = 30 * time.Second

// clusterSlots is how many slots every cluster has.
const clusterSlots = 16384

// cluster is a Redis Cluster of two masters without replicas, each with half of the slots at first.
type cluster struct {
	t     *testing.T
	nodes []*clusterNode
}

type clusterNode struct {
	t          *testing.T
	server     *redistest.Server
	admin      rueidis.Client
	host, port string
	id         string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	for i := range 2 {
		n := &clusterNode{t: t, server: redistest.Start(t, redistest.Options{Args: []string{"--cluster-enabled", "yes"}})}
		var err error
		if n.host, n.port, err = net.SplitHostPort(n.server.Addr()); err != nil {
			t.Fatal(err)
		}
		n.admin, err = rueidis.NewClient(rueidis.ClientOption{
			InitAddress: []string{n.server.Addr()}, ForceSingleClient: true, DisableCache: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.admin.Close)
		slots := []string{"CLUSTER", "ADDSLOTS"}
		for slot := i * clusterSlots / 2; slot < (i+1)*clusterSlots/2; slot++ {
			slots = append(slots, strconv.Itoa(slot))
		}
		n.do(slots...)
		n.id = n.text("CLUSTER", "MYID")
		c.nodes = append(c.nodes, n)
	}
	c.nodes[0].do("CLUSTER", "MEET", c.nodes[1].host, c.nodes[1].port)
	redistest.WaitFor(t, clusterWait, "the nodes to agree", func() bool {
		for _, n := range c.nodes {
			info := n.text("CLUSTER", "INFO")
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_size:2") {
				return false
			}
		}
		return true
	})
	return c
}

// client returns a rueidis client of the cluster.
func (c *cluster) client() rueidis.Client {
	c.t.Helper()
	rc, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{c.nodes[0].server.Addr()}, DisableCache: true, AlwaysPipelining: true,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if rc.Mode() != rueidis.ClientModeCluster {
		c.t.Fatalf("the client's mode is %v", rc.Mode())
	}
	c.t.Cleanup(rc.Close)
	return rc
}

// slot returns the slot of a key, the node that has it and the other one.
func (c *cluster) slot(key string) (slot string, owner, other *clusterNode) {
	c.t.Helper()
	reply := c.nodes[0].do("CLUSTER", "KEYSLOT", key)
	n, err := reply.AsInt64()
	if err != nil {
		c.t.Fatal(err)
	}
	slot = strconv.FormatInt(n, 10)
	for i, node := range c.nodes {
		// The owner alone answers without MOVED.
		cmd := node.admin.B().Arbitrary("EXISTS").Keys(key).Build()
		if node.admin.Do(context.Background(), cmd).Error() == nil {
			return slot, node, c.nodes[1-i]
		}
	}
	c.t.Fatalf("no node has slot %s", slot)
	return "", nil, nil
}

// move migrates the slot of a key to the node that does not have it, with everything in it, as redis-cli does.
func (c *cluster) move(key string) {
	c.t.Helper()
	slot, from, to := c.slot(key)
	to.do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
	from.do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
	for {
		reply := from.do("CLUSTER", "GETKEYSINSLOT", slot, "100")
		keys, err := reply.AsStrSlice()
		if err != nil {
			c.t.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		from.do(append([]string{"MIGRATE", to.host, to.port, "", "0", "5000", "KEYS"}, keys...)...)
	}
	to.do("CLUSTER", "SETSLOT", slot, "NODE", to.id)
	from.do("CLUSTER", "SETSLOT", slot, "NODE", to.id)
}

// do sends one command, given as words, to this node.
func (n *clusterNode) do(words ...string) rueidis.RedisMessage {
	n.t.Helper()
	m, err := n.admin.Do(context.Background(), n.admin.B().Arbitrary(words...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		n.t.Fatalf("%.100s: %v", strings.Join(words, " "), err)
	}
	return m
}

func (n *clusterNode) text(words ...string) string {
	n.t.Helper()
	m := n.do(words...)
	s, err := m.ToString()
	if err != nil {
		n.t.Fatal(err)
	}
	return strings.TrimPrefix(s, "txt:")
}
