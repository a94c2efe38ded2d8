package redistest

import (
	"testing"
	"time"
)

// pollInterval is how often a condition is looked at.
const pollInterval = 10 * time.Millisecond

// WaitFor returns as soon as cond is true, which it asks every 10 ms. After timeout it fails the test at once, naming
// what was waited for: "3 pending entries in the group". Call it from the goroutine of the test.
func WaitFor(tb testing.TB, timeout time.Duration, what string, cond func() bool) {
	tb.Helper()
	start := time.Now()
	if !poll(timeout, cond) {
		tb.Fatalf("waited %v (limit %v) in vain for: %s", time.Since(start).Round(time.Millisecond), timeout, what)
	}
}

// poll asks cond until it is true or the time is up, and once more at the end. It reports whether it became true.
func poll(timeout time.Duration, cond func() bool) bool {
	deadline := time.Now().Add(timeout)
	for {
		last := !time.Now().Before(deadline)
		if cond() {
			return true
		}
		if last {
			return false
		}
		time.Sleep(pollInterval)
	}
}
