package cli

import (
	"fmt"
	"strings"
)

// told is a setting, from INFO or else from CONFIG; empty: this user may ask neither.
func (s *serverState) told(field, setting string) string {
	if v := s.info[field]; v != "" {
		return v
	}
	return s.settings[setting]
}

// checkEviction: a queue is one key, which eviction drops whole.
func checkEviction(s *serverState) []finding {
	const check = "eviction"
	const do = "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
	switch policy := s.told("maxmemory_policy", "maxmemory-policy"); {
	case policy == "":
		return nil
	case policy == "noeviction":
		return []finding{ok(check, policy)}
	case strings.HasPrefix(policy, "allkeys-"):
		return []finding{problem(check, "maxmemory-policy is "+policy+": when memory is full, whole queues are dropped", do)}
	default:
		return []finding{warning(check, "maxmemory-policy is "+policy+": queues do not expire and stay, but the Dedupe and lock keys beside them, "+
			"and what neighbours keep, are evicted for them", do+"; or give queues a server of their own")}
	}
}

// memoryFull is the part of maxmemory from which it is time to do something.
const memoryFull = 0.9

// checkMemory: at maxmemory nothing can be published.
func checkMemory(s *serverState) []finding {
	const check, do = "memory", "raise maxmemory, or find out what grows: xstreamq ls shows backlogs and dead letters"
	most := s.number("maxmemory")
	used := s.number("used_memory")
	if used >= 0 {
		used -= max(0, s.number("mem_not_counted_for_evict"))
	}
	switch {
	case most < 0 || used < 0:
		return nil
	case most == 0:
		return []finding{note(check, size(used)+" used, and no maxmemory: it grows until the system ends it", "set maxmemory below what the machine or container has")}
	}
	seen := fmt.Sprintf("%s of %s used", size(used), size(most))
	switch part := float64(used) / float64(most); {
	case part >= 1:
		return []finding{problem(check, seen+": nothing can be published", do)}
	case part >= memoryFull:
		return []finding{warning(check, seen, do)}
	}
	return []finding{ok(check, seen)}
}

// checkAppendOnly: without the file a restart goes back to the last snapshot.
func checkAppendOnly(s *serverState) []finding {
	const check = "append-only file"
	enabled := s.told("aof_enabled", "appendonly")
	switch {
	case enabled == "":
		return nil
	case enabled == "0" || enabled == "no":
		return []finding{warning(check, "there is none: a restart loses everything since the last snapshot",
			"CONFIG SET appendonly yes, and the same in redis.conf")}
	case s.info["aof_last_write_status"] == "err":
		return []finding{problem(check, "the last write to it failed: Redis refuses writes until one succeeds", "look at the disk: is it full?")}
	case s.info["aof_last_bgrewrite_status"] == "err":
		return []finding{warning(check, "it could not be rewritten, so it only grows", "look at the log of Redis and at the disk")}
	}
	switch fsync := s.settings["appendfsync"]; fsync {
	case "no":
		return []finding{warning(check, "on, but appendfsync is no: a power cut loses what the system had not written, some 30 seconds",
			"CONFIG SET appendfsync everysec, and the same in redis.conf")}
	case "":
		return []finding{ok(check, "on")}
	default:
		return []finding{ok(check, "on, appendfsync "+fsync)}
	}
}

// checkSnapshots: after one failed, Redis may refuse writes.
func checkSnapshots(s *serverState) []finding {
	const check, do = "snapshots", "look at the log of Redis and at the disk: is it full, is its directory there?"
	switch {
	case s.info["rdb_last_bgsave_status"] == "":
		return nil
	case s.info["rdb_last_bgsave_status"] == "ok":
		return []finding{ok(check, "the last one succeeded, or none was made")}
	case s.settings["stop-writes-on-bgsave-error"] == "yes" && s.settings["save"] != "":
		return []finding{problem(check, "the last one failed: Redis refuses writes until one succeeds (MISCONF)", do)}
	}
	return []finding{warning(check, "the last one failed", do)}
}
