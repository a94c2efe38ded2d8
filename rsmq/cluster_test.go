package rsmq

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// startCluster returns the URL of a Redis Cluster of two masters, each with half of the slots.
func startCluster(t *testing.T) string {
	t.Helper()
	var nodes []*Client
	var addrs []string
	for _, first := range []int{0, 8192} {
		server := redistest.Start(t, redistest.Options{Args: []string{"--cluster-enabled", "yes"}})
		rc, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, ForceSingleClient: true, DisableCache: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(rc.Close)
		node := over(t, rc, Config{})
		run(t, node, redistest.AddSlots(first, first+8191)...)
		nodes, addrs = append(nodes, node), append(addrs, server.Addr())
	}
	host, port, err := net.SplitHostPort(addrs[1])
	if err != nil {
		t.Fatal(err)
	}
	run(t, nodes[0], "CLUSTER", "MEET", host, port)
	redistest.WaitFor(t, 30*time.Second, "the nodes to agree", func() bool {
		for _, node := range nodes {
			info, _ := run(t, node, "CLUSTER", "INFO").ToString()
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_size:2") {
				return false
			}
		}
		return true
	})
	return "redis://" + addrs[0] + "?addr=" + addrs[1]
}

// On a Redis Cluster a namespace with a {tag} works like any, and one without is refused.
func TestCluster(t *testing.T) {
	t.Parallel()
	url := startCluster(t)
	for _, cfg := range []Config{{}, {Namespace: "rsmq{}"}, {NoNamespace: true}} {
		if c, err := Open(url, cfg); err == nil || !strings.Contains(err.Error(), "{tag}") {
			t.Errorf("%+v: %v", cfg, err)
			c.Close()
		}
	}
	// Of these two, each lies on another node.
	for _, namespace := range []string{"rsmq{a}", "{b}"} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			c, err := Open(url, Config{Namespace: namespace, Realtime: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			if c.redis.Mode() != rueidis.ClientModeCluster {
				t.Fatal("this is no client of a cluster")
			}
			create(t, c, "q", QueueOptions{})
			heard := make(chan int64, 100)
			subscribed := make(chan error)
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			go func() { subscribed <- c.Subscribe(ctx, "q", func(n int64) { heard <- n }) }()
			redistest.WaitFor(t, 10*time.Second, "the subscription", func() bool {
				send(t, c, "q", "probe")
				return len(heard) > 0
			})
			cancel()
			if err := <-subscribed; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			var ids []string
			for range 3 {
				ids = append(ids, send(t, c, "q", "a", "b")...)
			}
			for _, name := range []string{"attributes", "receive", "pop", "extend", "delete", "list"} {
				if err := operations(t.Context(), c, ids[0])[name](); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if found, err := c.DeleteMessages(t.Context(), "q", ids[1:]); err != nil || !slices.Equal(found, []bool{true, true, true, true, true}) {
				t.Error(found, err)
			}
			names, err := c.ListQueues(t.Context())
			if err != nil || fmt.Sprint(names) != "[q]" {
				t.Error(names, err)
			}
			handled := make(chan Message, 100)
			working(t, c, handInto(handled), WorkerOptions{})
			id := send(t, c, "q", "work")[0]
			for m := range handled {
				if m.ID == id {
					break
				}
			}
			for _, name := range []string{"set", "drop"} {
				if err := operations(t.Context(), c, ids[0])[name](); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
