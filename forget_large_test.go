package xstreamq_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq"
)

// largeGroup makes a queue of n entries, all pending with one of n/50 consumers of the group, a fifth as many on the retry stream, in
// backoff, delayed and due at once, and as markers.
func (r *forgetRig) largeGroup(n int) {
	r.t.Helper()
	r.do("XGROUP CREATE @queue g 0 MKSTREAM\nXGROUP CREATE @retry g-retry 0 MKSTREAM\nHSET @registry q/g {}")
	for from := 1; from <= n; from += n / 10 {
		r.script(fmt.Sprintf(`
			for i = %d, %d do
				redis.call('XADD', KEYS[1], i .. '-0', 'body', 'b')
				if i %% 50 == 0 then
					redis.call('XREADGROUP', 'GROUP', 'g', 'c' .. i .. '~30000', 'COUNT', 50, 'STREAMS', KEYS[1], '>')
				end
				if i %% 5 == 0 then
					redis.call('XADD', KEYS[2], i .. '-0', 'body', 'b')
					redis.call('ZADD', KEYS[3], i, i .. '-0\0' .. '4:body1:b')
					redis.call('ZADD', KEYS[4], i, i .. '-0')
					redis.call('ZADD', KEYS[5], 7, 'd7-' .. string.format('%%08x', i) .. '\0' .. '4:body1:b')
				end
			end`, from, from+n/10-1), "queue", "retry", "backoff", "done", "delayed")
	}
}

// No call to Redis is long, however much a group and a queue hold: cancelling one of 100,000 that are due at once, forgetting a group
// with half a million pending messages, trimming what it kept.
func TestForgetAndCancelAmongHalfAMillion(t *testing.T) {
	t.Parallel()
	const n = 500_000
	r, server := forgetAlone(t, xstreamq.Config{})
	meter := newMeter(t, server.URL())
	r.client = stopNew(t, meter, xstreamq.Config{})
	r.largeGroup(n)
	r.do("XGROUP CREATE @queue other $\nCONFIG RESETSTAT")

	for _, i := range []int{5, 10, n / 2, n - 5, n} {
		if id := fmt.Sprintf("d7-%08x", i); !r.cancelled(id) {
			t.Errorf("%s was not cancelled", id)
		}
	}
	if calls := r.calls("zrange") + r.calls("zscan"); calls > 5*20 {
		t.Errorf("5 messages were looked for with %d reads", calls)
	}
	if r.cancelled("d7-1") {
		t.Error("one was cancelled that is not there")
	}
	meter.check("Cancel", stalls)

	if err := r.client.Forget(t.Context(), "q", "g", xstreamq.ForgetOptions{Force: true}); err != nil {
		t.Error(err)
	}
	meter.check("Forget", stalls)
	if left := r.state(); left != "group other pending 0" {
		t.Errorf("left: %s", left)
	}

	if got := r.compact(); got.Trimmed < n-node {
		t.Errorf("%+v", got)
	}
	meter.check("Compact", stalls)
}

// calls is how often the server ran a command, in scripts too.
func (r *forgetRig) calls(command string) (n int) {
	r.t.Helper()
	info := r.ask("INFO commandstats")
	text, _ := info.ToString()
	for line := range strings.Lines(text) {
		_, _ = fmt.Sscanf(line, "cmdstat_"+command+":calls=%d,", &n)
	}
	return n
}
