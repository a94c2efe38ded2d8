package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// serverChecks judge what a server says of itself. A check that was not told what it needs finds nothing.
var serverChecks = []func(*serverState) []finding{
	checkVersion, checkMode, checkRole, checkReplicas, checkEviction, checkMemory, checkAppendOnly, checkSnapshots, checkClock,
	checkRoundTrip, checkAccess, checkDenied,
}

// checkVersion: the scripts need 6.2.
func checkVersion(s *serverState) []finding {
	const check = "version"
	name, version := s.product()
	if version == "" {
		return nil
	}
	seen := name + " " + version
	switch major, minor := versionOf(s.info["redis_version"]); {
	case major == 0:
		return []finding{note(check, "a version that cannot be read: "+seen, "make sure that it does what Redis 6.2 does")}
	case major < 6 || major == 6 && minor < 2:
		return []finding{problem(check, seen+", which does not have what the queue's scripts need", "upgrade to Redis 6.2 or newer, or Valkey")}
	case major < 7:
		return []finding{ok(check, seen+"; it does not know how much a group has not read: that is counted, which takes a second per 500,000 entries")}
	}
	return []finding{ok(check, seen)}
}

// product is what the server is and its own version.
func (s *serverState) product() (name, version string) {
	for field, name := range map[string]string{"valkey_version": "Valkey", "dragonfly_version": "Dragonfly", "keydb_version": "KeyDB"} {
		if v := s.info[field]; v != "" {
			return name, v
		}
	}
	return "Redis", s.info["redis_version"]
}

func versionOf(text string) (major, minor int) {
	first, rest, _ := strings.Cut(text, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ = strconv.Atoi(first)
	minor, _ = strconv.Atoi(second)
	return major, minor
}

// checkMode: what is said of one node of a cluster need not hold for the others.
func checkMode(s *serverState) []finding {
	const check = "mode"
	mode := s.info["redis_mode"]
	if mode == "" {
		mode = s.info["server_mode"] // Valkey's name for it
	}
	switch {
	case mode == "sentinel" || s.role == "sentinel":
		return []finding{problem(check, "this is a Sentinel, which holds no data", "add master_set=NAME to the URL")}
	case mode == "cluster":
		return []finding{note(check, "a cluster; what is said of the server is of one of its nodes", "all keys of a queue lie on one node: spread load over queues")}
	case mode != "":
		return []finding{ok(check, mode)}
	}
	return nil
}

// checkRole: only a master takes writes.
func checkRole(s *serverState) []finding {
	const check = "role"
	switch s.role {
	case "master":
		return []finding{ok(check, "master")}
	case "slave":
		seen := fmt.Sprintf("a replica of %s:%s, whose link is %s", s.info["master_host"], s.info["master_port"], or(s.info["master_link_status"]))
		return []finding{problem(check, seen, "connect to the master, or name master_set for Sentinel")}
	}
	return nil
}

// replicaSlack is how many seconds ago a replica may have been heard of last: it says something every second.
const replicaSlack = 10

// replicaBehind is how many bytes it may lack.
const replicaBehind = 64 << 20

// checkReplicas: after a failover what a replica lacks is lost.
func checkReplicas(s *serverState) []finding {
	const check = "replicas"
	if s.role != "master" || s.info["connected_slaves"] == "" {
		return nil
	}
	count := s.number("connected_slaves")
	if count == 0 {
		return []finding{note(check, "none: what this server loses is lost", "give it a replica if it must outlast its machine")}
	}
	var found []finding
	for i := range count {
		if f := judgeReplica(s, infoPairs(s.info[fmt.Sprintf("slave%d", i)])); f.Level != levelOK {
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		found = append(found, ok(check, plural(int(count), "replica, which keeps up", "replicas, which keep up")))
	}
	return found
}

func judgeReplica(s *serverState, about map[string]string) finding {
	const check, do = "replicas", "look at its log and its network; a failover to it would lose what it lacks"
	name := about["ip"] + ":" + about["port"]
	if about["state"] != "online" {
		return warning(check, fmt.Sprintf("replica %s is %s", name, or(about["state"])), do)
	}
	if heard, err := strconv.ParseInt(about["lag"], 10, 64); err == nil && heard > replicaSlack {
		return warning(check, fmt.Sprintf("replica %s was not heard of for %s", name, short(time.Duration(heard)*time.Second)), do)
	}
	if at, err := strconv.ParseInt(about["offset"], 10, 64); err == nil && s.number("master_repl_offset")-at > replicaBehind {
		return warning(check, fmt.Sprintf("replica %s lacks %s", name, size(s.number("master_repl_offset")-at)), do)
	}
	return ok(check, name)
}

// infoPairs reads a value like ip=127.0.0.1,port=6380.
func infoPairs(text string) map[string]string {
	pairs := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		pairs[name] = value
	}
	return pairs
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
