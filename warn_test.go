package xstreamq_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Start warns once about settings of Redis that can lose messages, and says nothing where there are none, or where it may not look.
func TestStartWarnsOfSettingsThatLoseMessages(t *testing.T) {
	t.Parallel()
	const (
		evicts  = "Redis may evict whole queues when it is full; set maxmemory-policy noeviction policy=allkeys-lru"
		expires = "maxmemory-policy is not noeviction; use a server of its own for queues policy=volatile-ttl"
		noAOF   = "Redis has no append-only file: a restart loses messages; set appendonly yes appendonly=no"
	)
	for _, c := range []struct {
		name   string
		aof    string
		policy string
		user   bool // one who may not run CONFIG
		want   []string
	}{
		{name: "all well", aof: "everysec", policy: "noeviction"},
		{name: "allkeys", aof: "everysec", policy: "allkeys-lru", want: []string{evicts}},
		{name: "volatile", aof: "everysec", policy: "volatile-ttl", want: []string{expires}},
		{name: "no AOF", policy: "noeviction", want: []string{noAOF}},
		{name: "both", policy: "allkeys-lru", want: []string{evicts, noAOF}},
		{name: "both, unseen", policy: "allkeys-lru", user: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{AOF: c.aof, Args: []string{"--maxmemory-policy", c.policy}})
			url := server.URL()
			if c.user {
				url = aclURL(server)
				words := strings.Fields("ACL SETUSER app reset on >secret ~* +@all -config")
				healthCommand(t, redistest.Dial(t, server.URL()), words...)
			}
			log := &faultLog{}
			client := stopConnect(t, "open", url, xstreamq.Config{Logger: slog.New(log)})
			stopSubscribe(t, stopQueue(t, client, "q"), stopNothing, xstreamq.SubscribeOptions{})
			stopStart(t, client)
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(c.want, logLines(log)); diff != "" {
				t.Errorf("logged (-want +got):\n%s", diff)
			}
		})
	}
}

// logLines returns what was logged, nil for nothing.
func logLines(l *faultLog) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.lines)
}

// A Start that fails warns of nothing; the one that succeeds does.
func TestStartThatFailedFirstWarnsWhenItSucceeds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	admin := redistest.Dial(t, server.URL())
	log := &faultLog{}
	client := stopConnect(t, "open", server.URL(), xstreamq.Config{Logger: slog.New(log)})
	stopSubscribe(t, stopQueue(t, client, "q"), stopNothing, xstreamq.SubscribeOptions{})
	healthCommand(t, admin, "SET", "{q}", "not a stream")
	if _, err := startWithin(client, stopWait); err == nil {
		t.Fatal("Start succeeded on a key of the wrong type")
	}
	if n := log.count(); n != 0 {
		t.Errorf("logged after a Start that failed:\n%s", log)
	}
	healthCommand(t, admin, "DEL", "{q}")
	stopStart(t, client)
	if n := log.count(); n != 1 || !log.has("append-only file") {
		t.Errorf("logged %d lines, want the one about the append-only file:\n%s", n, log)
	}
}
