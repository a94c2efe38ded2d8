package xstreamq

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// No call of the compaction frees much more than it should, whatever the size of the bodies and however sizes are mixed: freeing is
// what blocks the server. Not parallel: it fills some 120 MiB at a time.
func TestCompactionFreesLittleAtATime(t *testing.T) {
	const entries, bytes = 5100, 80 << 20 // a call meets large bodies among small ones a little late
	server := redistest.Start(t, redistest.Options{})
	c, err := Open(server.URL(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	rc := redistest.Dial(t, server.URL())
	k := keys.ForQueue("", "q")
	ask := func(words ...string) rueidis.RedisResult {
		r := rc.Do(t.Context(), rc.B().Arbitrary(words...).Build())
		if err := r.Error(); err != nil {
			t.Fatal(words, err)
		}
		return r
	}
	used := func() int64 {
		info, _ := ask("INFO", "memory").ToString()
		n, _ := strconv.ParseInt(regexp.MustCompile(`used_memory:(\d+)`).FindStringSubmatch(info)[1], 10, 64)
		return n
	}
	for _, tt := range []struct {
		name, size string // of entry i, in Lua
		n          int
	}{
		{"16 B", "16", 100_000},
		{"1 KiB", "1024", 60_000},
		{"64 KiB", "65536", 1500},
		{"1 MiB", "1048576", 100},
		{"a few small, then large", "i <= 37 and 16 or 1048576", 137},
		{"every third is large", "i % 3 == 0 and 1048576 or 16", 300},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ask("DEL", k.Queue)
			for from := 1; from <= tt.n; from += 10_000 {
				ask("EVAL", fmt.Sprintf("for i = %d, %d do redis.call('XADD', KEYS[1], i .. '-0', 'body', string.rep('x', %s)) end return 1",
					from, min(tt.n, from+9999), tt.size), "1", k.Queue)
			}
			ask("XGROUP", "CREATE", k.Queue, "g", "$")
			ask("CONFIG", "SET", "slowlog-log-slower-than", "0")
			ask("SLOWLOG", "RESET")
			var trimmed, mostEntries, mostBytes int64
			calls := 0
			for more := true; more; calls++ {
				before := used()
				page, err := c.compactPage(t.Context(), k, "q")
				if err != nil {
					t.Fatal(err)
				}
				more = page.more
				trimmed += page.trimmed
				mostEntries, mostBytes = max(mostEntries, page.trimmed), max(mostBytes, before-used())
			}
			if left := int64(tt.n) - trimmed; left < 0 || left > 100 {
				t.Errorf("%d of %d entries are left", left, tt.n)
			}
			if mostEntries > entries || mostBytes > bytes {
				t.Errorf("one call freed %d entries, one %d MiB", mostEntries, mostBytes>>20)
			}
			t.Logf("%d calls, of at most %d entries and %d MiB, the longest %v", calls, mostEntries, mostBytes>>20, slowestScript(t, ask("SLOWLOG", "GET", "1000")))
		})
	}
}

// slowestScript is the longest call of a script in an answer to SLOWLOG GET.
func slowestScript(t *testing.T, r rueidis.RedisResult) string {
	t.Helper()
	entries, err := r.ToArray()
	if err != nil {
		t.Fatal(err)
	}
	var longest int64
	for i := range entries {
		parts, _ := entries[i].ToArray()
		words, _ := parts[3].AsStrSlice()
		if us, _ := parts[2].AsInt64(); words[0] == "EVALSHA" {
			longest = max(longest, us)
		}
	}
	return fmt.Sprintf("%.1f ms", float64(longest)/1000)
}
