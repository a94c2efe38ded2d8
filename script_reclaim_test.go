package xstreamq

import (
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// sweep is a sweep of the queue with a lease of 30 s. Its interval is long, so that the lock it takes shows as 80 s.
func sweep(change func(*reclaimArgs)) scriptCall {
	return func(e scriptEnv) rueidis.RedisResult {
		a := reclaimArgs{
			Group: "g", Start: "-", Last: e.now, Interval: 100_000, Lease: 30_000, Budget: 5, Seed: 7, Delays: []string{"60000"},
		}
		if change != nil {
			change(&a)
		}
		if a.Ours {
			e = e.onRetry()
		}
		return runReclaim(e.ctx, e.redis, e.keys, a)
	}
}

func sweepRetry(change func(*reclaimArgs)) scriptCall {
	return sweep(func(a *reclaimArgs) {
		a.Group, a.Ours = "g-retry", true
		if change != nil {
			change(a)
		}
	})
}

// expired is held, with its lease of 20 s over. expiredAgain is heldAgain likewise: it lost one lease before.
const (
	expired      = held + "\nXCLAIM @queue g w~20000 0 1-0 IDLE 30000 RETRYCOUNT 1 JUSTID\n"
	expiredAgain = heldAgain + "\nXCLAIM @retry g-retry w~20000 0 5-0 IDLE 30000 RETRYCOUNT 1 JUSTID\n"
)

func TestScriptReclaimMoves(t *testing.T) {
	runScriptCases(t, []scriptCase{
		{
			name: "nothing pending", before: "XADD @queue 1-0 body a\nXGROUP CREATE @queue g 0-0", call: sweep(nil), reply: `[1 now "" 0 0 0 0 [] []]`,
			after: `
				queue
				  1-0 body=a
				  g at 0-0:
				lock 1 for 80s`,
		},
		{
			name: "leases that run stay", before: heldMany, call: sweep(nil), reply: `[1 now "" 0 0 0 0 [] []]`,
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  3-0 body=c
				  g at 3-0: c
				    1-0 c x1
				    2-0 c x1
				    3-0 c x1
				lock 1 for 80s`,
		},
		{
			name: "the first loss goes to the retry stream", before: expired, call: sweep(nil), reply: `[1 now "" 1 0 0 0 [] []]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c w~20000
				retry
				  * body=a oid=1-0 lc=1 err="lease lost by w~20000"
				lock 1 for 80s`,
		},
		{
			name: "the second one waits", before: expiredAgain, call: sweepRetry(nil), reply: `[1 now "" 0 1 0 0 [] []]`,
			after: `
				retry
				  g-retry at 5-0: c w~20000
				backoff
				  … 1-0 body=a h:k=v oid=1-0 rc=2 lc=2 err="lease lost by w~20000"
				retrylock 1 for 80s`,
		},
		{
			name: "one that failed and never lost a lease goes to the retry stream", before: strings.Replace(expiredAgain, " lc 1", "", 1),
			call: sweepRetry(nil), reply: `[1 now "" 1 0 0 0 [] []]`,
			after: `
				retry
				  * body=a h:k=v oid=1-0 rc=2 lc=1 err="lease lost by w~20000"
				  g-retry at 5-0: c w~20000
				retrylock 1 for 80s`,
		},
		{
			name: "a delivery count of 0 is a release", before: strings.Replace(expired, "RETRYCOUNT 1", "RETRYCOUNT 0", 1),
			call: sweep(nil), reply: `[1 now "" 0 0 1 0 [] []]`,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c w~20000
				retry
				  * body=a oid=1-0
				lock 1 for 80s`,
		},
		{
			name: "also of a redelivery, with its counters", before: strings.Replace(expiredAgain, "RETRYCOUNT 1", "RETRYCOUNT 0", 1),
			call: sweepRetry(func(a *reclaimArgs) { a.Budget = 0 }), reply: `[1 now "" 0 0 1 0 [] []]`,
			after: `
				retry
				  * body=a h:k=v oid=1-0 rc=2 lc=1 err=boom
				  g-retry at 5-0: c w~20000
				retrylock 1 for 80s`,
		},
	})
}

func TestScriptReclaimBudget(t *testing.T) {
	dead := func(lost string) string {
		return `
			retry
			  g-retry at 5-0: c w~20000
			dlq
			  * body=a h:k=v oid=1-0 rc=2 lc=` + lost + ` err="lease lost by w~20000" reason=lost-lease at=now from=5-0 by=w~20000
			retrylock 1 for 80s`
	}
	const waits = `
		retry
		  g-retry at 5-0: c w~20000
		backoff
		  … 1-0 body=a h:k=v oid=1-0 rc=2 lc=2 err="lease lost by w~20000"
		retrylock 1 for 80s`
	// expiredAgain lost one lease, so this is its second loss.
	second := func(budget int64) scriptCall { return sweepRetry(func(a *reclaimArgs) { a.Budget = budget }) }
	const buried, moved = `[1 now "" 0 0 0 0 ["* lost-lease"] []]`, `[1 now "" 0 1 0 0 [] []]`
	runScriptCases(t, []scriptCase{
		{name: "none", before: expiredAgain, call: second(0), reply: buried, after: dead("2")},
		{name: "one less", before: expiredAgain, call: second(1), reply: buried, after: dead("2")},
		{name: "equal", before: expiredAgain, call: second(2), reply: moved, after: waits},
		{name: "one more", before: expiredAgain, call: second(3), reply: moved, after: waits},
		{name: "without end", before: expiredAgain, call: second(-1), reply: moved, after: waits},
		{name: "failures do not count", before: strings.Replace(expiredAgain, "rc 2", "rc 9", 1), call: second(2), reply: moved,
			after: strings.Replace(waits, "rc=2", "rc=9", 1)},
		{
			name: "the first loss with none", before: expired, call: sweep(func(a *reclaimArgs) { a.Budget = 0 }), reply: buried,
			after: `
				queue
				  1-0 body=a
				  g at 1-0: c w~20000
				dlq
				  * body=a oid=1-0 lc=1 err="lease lost by w~20000" reason=lost-lease at=now from=1-0 by=w~20000
				lock 1 for 80s`,
		},
	})
}

// A lease is as long as its owner says.
func TestScriptReclaimOwners(t *testing.T) {
	owned := func(owner, idle string) string {
		return held + "\nXCLAIM @queue g " + owner + " 0 1-0 IDLE " + idle + " RETRYCOUNT 1 JUSTID"
	}
	moves := func(owner, idle string) scriptCase {
		return scriptCase{
			name: owner + " after " + idle, before: owned(owner, idle),
			call: sweep(func(a *reclaimArgs) { a.Start = "0-0" }), reply: `[1 now "" 1 0 0 0 [] []]`,
			after: "queue\n  1-0 body=a\n  g at 1-0: c " + owner + "\nretry\n  * body=a oid=1-0 lc=1 err=\"lease lost by " + owner + "\"",
		}
	}
	stays := func(owner, idle string) scriptCase {
		return scriptCase{
			name: owner + " after " + idle, before: owned(owner, idle),
			call: sweep(func(a *reclaimArgs) { a.Start = "0-0" }), reply: `[1 now "" 0 0 0 0 [] []]`,
		}
	}
	runScriptCases(t, []scriptCase{
		moves("w~500", "500"),
		moves("w~20000", "20000"),
		stays("w~20000", "10000"),
		stays("w~600000", "400000"),
		moves("w~600000", "600000"),
		stays("w~0", "86400000"),
		moves("worker", "30000"),
		stays("worker", "20000"),
		moves("w~", "30000"),
		stays("w~x", "20000"),
		stays("w~500~", "20000"),
		moves("w~500~600", "600"),
	})
}

func TestScriptReclaimLock(t *testing.T) {
	const moved = `[1 now "" 1 0 0 0 [] []]`
	after := func(lock string) string {
		return `
			queue
			  1-0 body=a
			  g at 1-0: c w~20000
			retry
			  * body=a oid=1-0 lc=1 err="lease lost by w~20000"` + lock
	}
	retries := func(lock string) string {
		return `
			retry
			  * body=a h:k=v oid=1-0 rc=2 lc=1 err="lease lost by w~20000"
			  g-retry at 5-0: c w~20000` + lock
	}
	runScriptCases(t, []scriptCase{
		{name: "another sweeper is at it", before: expired + "SET @lock 1 PX 20000", call: sweep(nil), reply: "[0 now]"},
		{
			name: "a later page needs no lock", before: expired + "SET @lock 1 PX 20000",
			call: sweep(func(a *reclaimArgs) { a.Start = "0-1" }), reply: moved, after: after("\n\t\t\tlock 1 for 20s"),
		},
		{
			name: "each stream has its own", before: strings.Replace(expiredAgain, " lc 1", "", 1) + "SET @lock 1 PX 20000",
			call: sweepRetry(nil), reply: moved, after: retries("\n\t\t\tlock 1 for 20s\n\t\t\tretrylock 1 for 80s"),
		},
		{name: "a lock without an end", before: expired + "SET @lock x", call: sweep(nil), reply: moved, after: after("\n\t\t\tlock 1 for 80s")},
		{name: "a lock from before the clock went back", before: expired + "SET @lock 1 PX 3600000", call: sweep(nil), reply: moved,
			after: after("\n\t\t\tlock 1 for 80s")},
		{name: "something else at its key", before: expired + "RPUSH @lock x", call: sweep(nil), reply: moved, after: after("\n\t\t\tlock 1 for 80s")},
		{name: "no time known yet", before: expired, call: sweep(func(a *reclaimArgs) { a.Last = 0 }), reply: "[2 now]"},
		{name: "no such group", before: "XADD @queue 1-0 body a", call: sweep(func(a *reclaimArgs) { a.Start = "0-0" }), reply: "error NOGROUP…"},
		{name: "no such stream", call: sweep(func(a *reclaimArgs) { a.Start = "0-0" }), reply: "error NOGROUP…"},
		{name: "queue of the wrong type", before: "SET @queue x", call: sweep(func(a *reclaimArgs) { a.Start = "0-0" }), reply: "error WRONGTYPE…"},
	})
}

// After a pause or a clock step the living must renew first. The lease of expired is 20 s, a third of it 6.7 s.
func TestScriptReclaimClock(t *testing.T) {
	seen := func(ago, interval int64) scriptCall {
		return sweep(func(a *reclaimArgs) { a.Start, a.Last, a.Interval = "0-0", a.Last-ago, interval })
	}
	sinceThen := func(ago, since int64) scriptCall {
		return sweep(func(a *reclaimArgs) { a.Start, a.Last, a.Interval, a.Since = "0-0", a.Last-ago, 10_000, a.Last-since })
	}
	const heldBack, moved = `[1 now "" 0 0 0 1 [] []]`, `[1 now "" 1 0 0 0 [] []]`
	const after = `
		queue
		  1-0 body=a
		  g at 1-0: c w~20000
		retry
		  * body=a oid=1-0 lc=1 err="lease lost by w~20000"`
	runScriptCases(t, []scriptCase{
		{name: "paused", before: expired, call: seen(17_000, 10_000), reply: heldBack},
		{name: "late, but not by a third of the lease", before: expired, call: seen(13_000, 10_000), reply: moved, after: after},
		{name: "stepped back", before: expired, call: seen(-23_000, 10_000), reply: heldBack},
		{name: "stepped back a little", before: expired, call: seen(-13_000, 10_000), reply: moved, after: after},
		{name: "late again, and nobody has renewed since", before: expired, call: sinceThen(40_000, 25_000), reply: moved, after: after},
		{name: "late again, and renewed since", before: expired, call: sinceThen(40_000, 35_000), reply: heldBack},
		{name: "on time again, and nobody has renewed since", before: expired, call: sinceThen(0, 25_000), reply: moved, after: after},
		{name: "on time again, and renewed since", before: expired, call: sinceThen(0, 35_000), reply: heldBack},
		{name: "stepped back since then", before: expired, call: sinceThen(0, -35_000), reply: heldBack},
		{
			name: "a longer lease is not held back", before: expired + `
				XADD @queue 2-0 body b
				XREADGROUP GROUP g c STREAMS @queue >
				XCLAIM @queue g w~90000 0 2-0 IDLE 90000 RETRYCOUNT 1 JUSTID`,
			call: seen(20_000, 10_000), reply: `[1 now "" 1 0 0 1 [] []]`,
			after: `
				queue
				  1-0 body=a
				  2-0 body=b
				  g at 2-0: c w~20000 w~90000
				    1-0 w~20000 x1 idle 30s
				retry
				  * body=b oid=2-0 lc=1 err="lease lost by w~90000"`,
		},
	})
}
