// Package keys builds every Redis key name of the engine, and says which names may go into one.
package keys

import (
	"strconv"
	"strings"
)

// Limits of the names that become part of a key.
const (
	MaxName   = 160
	MaxPrefix = 64
)

// Registry and health keys hang off the prefix alone: each lives in a slot of its own.
const (
	registry = "xstreamq:registry"
	health   = "xstreamq:health"
)

// Set holds the keys that one script call may name. All but Registry carry the queue's hash tag,
// so they share a slot. Source is the stream a delivery is read from: the queue or the retry stream.
type Set struct {
	Queue   string // stream: the queue
	Delayed string // zset: delayed publishes

	Source  string // stream: Queue or Retry
	Retry   string // stream: redeliveries of the group
	DLQ     string // stream: dead letters of the group
	Backoff string // zset: failed messages of the group that wait out their backoff
	Done    string // zset: Dedupe markers of the group
	Lock    string // string: who sweeps Source now

	Registry string // hash: every group that subscribed, under this prefix
}

// ForQueue returns the keys a publisher needs.
func ForQueue(prefix, queue string) Set {
	base := prefix + "{" + queue + "}"
	return Set{
		Queue:    base,
		Delayed:  base + ".delayed",
		Registry: prefix + registry,
	}
}

// ForGroup returns the keys of one group, with Source naming the queue itself.
func ForGroup(prefix, queue, group string) Set {
	s := ForQueue(prefix, queue)
	of := s.Queue + "." + group
	s.Source = s.Queue
	s.Retry = of + ".retry"
	s.DLQ = of + ".dlq"
	s.Backoff = of + ".delayed"
	s.Done = of + ".done"
	s.Lock = lock(s.Queue, "reclaim", group)
	return s
}

// OnRetry returns the same keys with Source naming the retry stream.
func (s Set) OnRetry(group string) Set {
	s.Source = s.Retry
	s.Lock = lock(s.Queue, "reclaim-retry", group)
	return s
}

// RetryGroup is the name of the consumer group on the retry stream.
func RetryGroup(group string) string { return group + "-retry" }

// Member is the field of a group in the registry. Names hold no slash, so it cannot be ambiguous.
func Member(queue, group string) string { return queue + "/" + group }

// Health is a key that nothing ever creates; a write that would not create it shows whether the server takes writes.
func Health(prefix string) string { return prefix + health }

// Migrated is a zset of the ids of RSMQ messages that were copied to a queue, while that is under way.
func Migrated(prefix, queue string) string { return ForQueue(prefix, queue).Queue + ":migrated" }

func lock(base, job, group string) string { return base + ":lock:" + job + ":" + group }

// Bad returns what is wrong with a name of at most limit characters, or "".
func Bad(name string, limit int) string {
	for i, r := range name {
		if !allowed(r) {
			return "has " + strconv.QuoteRune(r) + " at position " + strconv.Itoa(i+1) + "; allowed are A-Z a-z 0-9 _ . : @ -"
		}
	}
	// Every character is one byte by now.
	if len(name) > limit {
		return "is longer than " + strconv.Itoa(limit) + " characters"
	}
	return ""
}

func allowed(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return true
	}
	return strings.ContainsRune("_.:@-", r)
}
