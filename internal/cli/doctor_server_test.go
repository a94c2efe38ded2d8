package cli

import (
	"strings"
	"testing"
	"time"
)

// What the checks of the server make of what it says. The wants are level, check and a part of what was seen; none: no finding.
func TestServerChecks(t *testing.T) {
	t.Parallel()
	info := func(pairs ...string) *serverState {
		s := &serverState{info: map[string]string{}, settings: map[string]string{}}
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			s.info[name] = value
		}
		return s
	}
	settings := func(s *serverState, pairs ...string) *serverState {
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			s.settings[name] = value
		}
		return s
	}
	role := func(s *serverState, role string) *serverState { s.role = role; return s }
	for _, c := range []struct {
		name  string
		check func(*serverState) []finding
		state *serverState
		want  []string
	}{
		{"version 5", checkVersion, info("redis_version=5.0.14"), []string{"problem version Redis 5.0.14"}},
		{"version 6.0", checkVersion, info("redis_version=6.0.20"), []string{"problem version Redis 6.0.20"}},
		{"version 6.2", checkVersion, info("redis_version=6.2.14"), []string{"ok version that is counted"}},
		{"version 7", checkVersion, info("redis_version=7.0.15"), []string{"ok version Redis 7.0.15"}},
		{"version 10", checkVersion, info("redis_version=10.0.1"), []string{"ok version Redis 10.0.1"}},
		{"Valkey", checkVersion, info("redis_version=7.2.4", "valkey_version=8.0.1", "server_name=valkey"), []string{"ok version Valkey 8.0.1"}},
		{"version unreadable", checkVersion, info("redis_version=seven"), []string{"note version seven"}},
		{"version unknown", checkVersion, info(), nil},

		{"standalone", checkMode, info("redis_mode=standalone"), []string{"ok mode standalone"}},
		{"cluster", checkMode, info("redis_mode=cluster"), []string{"note mode cluster"}},
		{"standalone Valkey", checkMode, info("server_mode=standalone"), []string{"ok mode standalone"}},
		{"cluster of Valkey", checkMode, info("server_mode=cluster"), []string{"note mode cluster"}},
		{"Sentinel of Valkey", checkMode, info("server_mode=sentinel"), []string{"problem mode Sentinel"}},
		{"mode unknown", checkMode, info(), nil},
		{"sentinel", checkMode, role(info(), "sentinel"), []string{"problem mode Sentinel"}},

		{"master", checkRole, role(info(), "master"), []string{"ok role master"}},
		{"replica", checkRole, role(info("master_host=10.0.0.1", "master_port=6379", "master_link_status=up"), "slave"),
			[]string{"problem role a replica of 10.0.0.1:6379, whose link is up"}},
		{"role unknown", checkRole, info(), nil},

		{"no replica", checkReplicas, role(info("connected_slaves=0"), "master"), []string{"note replicas none"}},
		{"replicas", checkReplicas, role(info("connected_slaves=2", "master_repl_offset=100",
			"slave0=ip=10.0.0.2,port=6379,state=online,offset=100,lag=0", "slave1=ip=10.0.0.3,port=6379,state=online,offset=99,lag=1"), "master"),
			[]string{"ok replicas 2 replicas"}},
		{"replica silent", checkReplicas, role(info("connected_slaves=1", "master_repl_offset=100",
			"slave0=ip=10.0.0.2,port=6379,state=online,offset=100,lag=70"), "master"), []string{"warning replicas 10.0.0.2:6379 was not heard of for 1m10s"}},
		{"replica behind", checkReplicas, role(info("connected_slaves=2", "master_repl_offset=209715200",
			"slave0=ip=10.0.0.2,port=6379,state=online,offset=100,lag=1", "slave1=ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0"), "master"),
			[]string{"warning replicas 10.0.0.2:6379 lacks 200.0 MiB", "warning replicas 10.0.0.3:6379 is wait_bgsave"}},

		{"noeviction", checkEviction, info("maxmemory_policy=noeviction"), []string{"ok eviction noeviction"}},
		{"allkeys", checkEviction, info("maxmemory_policy=allkeys-lru"), []string{"problem eviction allkeys-lru"}},
		{"volatile, of CONFIG", checkEviction, settings(info(), "maxmemory-policy=volatile-ttl"), []string{"warning eviction volatile-ttl"}},
		{"eviction unknown", checkEviction, info(), nil},

		{"no maxmemory", checkMemory, info("maxmemory=0", "used_memory=1048576"), []string{"note memory 1.0 MiB"}},
		{"half full", checkMemory, info("maxmemory=2097152", "used_memory=1048576"), []string{"ok memory 1.0 MiB of 2.0 MiB"}},
		{"nearly full", checkMemory, info("maxmemory=1000", "used_memory=950"), []string{"warning memory 950 B of 1000 B"}},
		{"buffers do not count", checkMemory, info("maxmemory=1000", "used_memory=950", "mem_not_counted_for_evict=500"), []string{"ok memory 450 B"}},
		{"full", checkMemory, info("maxmemory=1000", "used_memory=1000"), []string{"problem memory nothing can be published"}},

		{"no file", checkAppendOnly, info("aof_enabled=0"), []string{"warning append-only file none"}},
		{"no file, of CONFIG", checkAppendOnly, settings(info(), "appendonly=no"), []string{"warning append-only file none"}},
		{"everysec", checkAppendOnly, settings(info("aof_enabled=1"), "appendfsync=everysec"), []string{"ok append-only file on, appendfsync everysec"}},
		{"never synced", checkAppendOnly, settings(info("aof_enabled=1"), "appendfsync=no"), []string{"warning append-only file appendfsync is no"}},
		{"write failed", checkAppendOnly, info("aof_enabled=1", "aof_last_write_status=err"), []string{"problem append-only file refuses writes"}},
		{"rewrite failed", checkAppendOnly, info("aof_enabled=1", "aof_last_bgrewrite_status=err"), []string{"warning append-only file rewritten"}},

		{"snapshot", checkSnapshots, info("rdb_last_bgsave_status=ok"), []string{"ok snapshots"}},
		{"snapshot failed", checkSnapshots, settings(info("rdb_last_bgsave_status=err"), "stop-writes-on-bgsave-error=yes", "save=60 1"),
			[]string{"problem snapshots MISCONF"}},
		{"snapshot failed, writes go on", checkSnapshots, settings(info("rdb_last_bgsave_status=err"), "stop-writes-on-bgsave-error=no", "save=60 1"),
			[]string{"warning snapshots failed"}},

		{"clock", checkClock, &serverState{skew: 400 * time.Microsecond, roundTrip: time.Millisecond}, []string{"ok clock 0.40ms ahead"}},
		{"clock ahead", checkClock, &serverState{skew: 90 * time.Second, roundTrip: time.Millisecond}, []string{"warning clock 1m30s ahead of"}},
		{"clock behind", checkClock, &serverState{skew: -2 * time.Second, roundTrip: time.Millisecond}, []string{"warning clock 2s behind"}},
		{"clock within the round trip", checkClock, &serverState{skew: 2 * time.Second, roundTrip: 3 * time.Second}, []string{"ok clock 2s ahead"}},

		{"near", checkRoundTrip, &serverState{roundTrip: 300 * time.Microsecond}, []string{"ok round trip 0.30ms"}},
		{"far", checkRoundTrip, &serverState{roundTrip: 40 * time.Millisecond}, []string{"note round trip 40.00ms"}},
		{"very far", checkRoundTrip, &serverState{roundTrip: 240 * time.Millisecond}, []string{"warning round trip 240.00ms"}},

		{"open to all", checkAccess, &serverState{anybody: true, settings: map[string]string{"protected-mode": "no", "bind": "* -::*"}},
			[]string{"warning access no password"}},
		{"protected", checkAccess, &serverState{anybody: true, settings: map[string]string{"protected-mode": "yes", "bind": "* -::*"}}, nil},
		{"loopback", checkAccess, &serverState{anybody: true, settings: map[string]string{"protected-mode": "no", "bind": "127.0.0.1 -::1"}}, nil},
		{"password", checkAccess, &serverState{settings: map[string]string{"protected-mode": "no", "bind": ""}}, nil},

		{"all may be asked", checkDenied, &serverState{}, nil},
		{"denied", checkDenied, &serverState{denied: []string{"+info", "+config|get"}}, []string{"note permissions"}},
		{"not there", checkDenied, &serverState{unknown: []string{"CONFIG GET"}}, []string{"note permissions CONFIG GET"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			compareFindings(t, c.check(c.state), c.want)
		})
	}
}

// compareFindings wants of each finding its level and check, and the last part somewhere in what was seen. What is not well comes
// with what to do.
func compareFindings(t *testing.T, got []finding, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("found %+v, want %q", got, want)
	}
	for i, f := range got {
		start := string(f.Level) + " " + f.Check
		part, ok := strings.CutPrefix(want[i], start)
		if !ok || !strings.Contains(f.Seen, strings.TrimSpace(part)) {
			t.Errorf("found %+v, want %q", f, want[i])
		}
		if f.Do == "" && f.Level != levelOK && len(f.Seen) > 0 && !strings.Contains(f.Seen, "does not know") {
			t.Errorf("%+v does not say what to do", f)
		}
	}
}

// A write that is refused has the remedy of its cause.
func TestWriteCheck(t *testing.T) {
	t.Parallel()
	for refused, want := range map[string]level{
		"": levelOK,
		"READONLY You can't write against a read only replica.":                 levelProblem,
		"OOM command not allowed when used memory > 'maxmemory'.":               levelProblem,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently": levelProblem,
		"NOREPLICAS Not enough good replicas to write.":                         levelProblem,
		"NOPERM this user has no permissions to run the 'xadd' command":         levelNote,
		"dial tcp 127.0.0.1:1: connect: connection refused":                     levelProblem,
		"CLUSTERDOWN Hash slot not served":                                      levelProblem,
	} {
		if f := checkWrites(refused); f.Level != want || !strings.Contains(f.Seen, refused) {
			t.Errorf("%q: %+v", refused, f)
		}
	}
}
