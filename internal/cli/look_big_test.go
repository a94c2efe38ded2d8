//go:build linux

package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// fillBig makes a queue with entries, of which group g holds the first ones.
func fillBig(t *testing.T, client rueidis.Client, entries, held int) {
	t.Helper()
	do := func(words ...string) {
		err := client.Do(t.Context(), client.B().Arbitrary(words...).Build()).Error()
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(err)
		}
	}
	const step = 20_000
	const add = `for i = ARGV[1] + 1, ARGV[2] do
		redis.call('XADD', KEYS[1], i .. '-0', 'body', '{"order":' .. i .. '}', 'h:tenant', 'acme')
	end`
	do("XGROUP", "CREATE", "{q}", "g", "0", "MKSTREAM")
	for from := 0; from < entries; from += step {
		do("EVAL", add, "1", "{q}", fmt.Sprint(from), fmt.Sprint(from+step))
	}
	for range held / step {
		do("XREADGROUP", "GROUP", "g", "w~1000", "COUNT", fmt.Sprint(step), "STREAMS", "{q}", ">")
	}
	do("HSET", "xstreamq:registry", "q/g", "{}")
	do("CONFIG", "SET", "slowlog-log-slower-than", slowCall)
	do("SLOWLOG", "RESET")
}

// TestLongQueueIsLookedAtInBoundedTimeAndMemory: with 500,000 entries, 100,000 of them pending, a command answers at once, holds
// no more than it shows, and keeps Redis busy for long with no call.
func TestLongQueueIsLookedAtInBoundedTimeAndMemory(t *testing.T) {
	t.Parallel()
	const entries, held = 500_000, 100_000
	server := redistest.Start(t, redistest.Options{})
	client := redistest.Dial(t, server.URL())
	fillBig(t, client, entries, held)
	run := func(lines int, begins string, args ...string) {
		t.Helper()
		cmd := command(t, args...)
		cmd.Env = append(cmd.Env, "XSTREAMQ_URL="+server.URL(), "GORACE=atexit_sleep_ms=0")
		peak := watchMemory(t, cmd)
		begun := time.Now()
		printed, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", args, err)
		}
		stdout := string(printed)
		t.Logf("%v: %v, %d MiB", args, time.Since(begun), peak())
		if used := peak(); used > 200 {
			t.Errorf("%v took %d MiB of memory", args, used)
		}
		if n := strings.Count(stdout, "\n"); n != lines || !strings.HasPrefix(stdout, begins) {
			t.Errorf("%v printed %d lines, %.100q; want %d, %q", args, n, stdout, lines, begins)
		}
	}
	run(10, "1-0\t1-0\t", "peek", "q")
	run(10, fmt.Sprintf("%d-0\t", held+1), "peek", "q", "g")
	run(1, fmt.Sprintf("q\tg\t%d\t%d\t%d\t", entries, entries-held, held), "depth", "q", "g")
	run(1, fmt.Sprintf("q\tg\t%d\t%d\t", entries-held, held), "ls")
	run(1, "1-0\t", "pending", "q", "g", "--limit", "1")
	run(held, `{"id":"1-0",`, "pending", "q", "g", "--json")
	slow, err := client.Do(context.Background(), client.B().SlowlogGet().Build()).ToArray()
	if err != nil || len(slow) > 0 {
		t.Errorf("slow calls: %v, %v", slow, err)
	}
}
