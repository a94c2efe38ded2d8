package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// queueOf stores n entries in the queue, numbered from 1.
func (r *forgetRig) queueOf(n int) {
	r.t.Helper()
	r.script(fmt.Sprintf("for i = 1, %d do redis.call('XADD', KEYS[1], i .. '-0', 'body', 'b') end", n), "queue")
}

func (r *forgetRig) compact() xstreamq.CompactResult {
	r.t.Helper()
	result, err := r.client.Compact(r.t.Context(), "q")
	if err != nil {
		r.t.Fatal(err)
	}
	return result
}

// Compact trims up to what the slowest group has finished with (P2), in as many pages as it takes, and says how much that was.
func TestCompactTrimsWhatIsFinished(t *testing.T) {
	t.Parallel()
	const n, slow = 23_000, 12_345
	r := newForgetRig(t, xstreamq.Config{})
	r.queueOf(n)
	r.do(fmt.Sprintf("XGROUP CREATE @queue fast %d-0\nXGROUP CREATE @queue slow %d-0", n, slow))
	got := r.compact()
	left := r.int("XLEN @queue")
	if got.Trimmed != n-left || got.Missing != "" {
		t.Errorf("%+v, and %d of %d entries are left", got, left, n)
	}
	if least := int64(n - slow); left < least || left > least+node {
		t.Errorf("%d entries are left, of which %d are needed", left, least)
	}
	if again := r.compact(); again != (xstreamq.CompactResult{}) {
		t.Errorf("once more: %+v", again)
	}
	r.do("XREADGROUP GROUP slow c COUNT 1 STREAMS @queue >\nXGROUP SETID @queue slow $")
	if held := r.compact(); held != (xstreamq.CompactResult{}) {
		t.Errorf("beyond an entry that is pending: %+v", held)
	}
	r.do(fmt.Sprintf("XACK @queue slow %d-0", slow+1))
	r.compact()
	if left := r.int("XLEN @queue"); left > node {
		t.Errorf("%d entries are left that nobody needs", left)
	}
}

// Compact keeps everything while a registered group is missing from the queue, and while there is none, and says so.
func TestCompactSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	r.queueOf(1000)
	want := func(result xstreamq.CompactResult) {
		t.Helper()
		if diff := cmp.Diff(result, r.compact()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	want(xstreamq.CompactResult{NoGroup: true})
	r.do("XGROUP CREATE @queue g 1000-0\nHSET @registry q/g {} q/gone {} other/group {}")
	want(xstreamq.CompactResult{Missing: "gone"})
	if n := r.int("XLEN @queue"); n != 1000 {
		t.Errorf("%d of 1000 entries are left", n)
	}
	r.do("HDEL @registry q/gone")
	want(xstreamq.CompactResult{Trimmed: 900})
}

// Compact keeps finished entries for Config.Retain, as the workers do.
func TestCompactRetains(t *testing.T) {
	t.Parallel()
	for retain, want := range map[time.Duration]int64{0: 700, time.Hour: 500, -1: 0} {
		r := newForgetRig(t, xstreamq.Config{Retain: retain})
		r.queueOf(500)
		r.script("for i = 1, 300 do redis.call('XADD', KEYS[1], '*', 'body', 'b') end", "queue")
		r.do("XGROUP CREATE @queue g $")
		if got := r.compact(); got.Trimmed != want {
			t.Errorf("Retain %v: %d trimmed, want %d", retain, got.Trimmed, want)
		}
	}
}

// What Compact says of queues that are not there or not what they should be; each error names the queue.
func TestCompactErrors(t *testing.T) {
	t.Parallel()
	r := newForgetRig(t, xstreamq.Config{})
	want := func(what, queue string, is error, says ...string) {
		t.Helper()
		_, err := r.client.Compact(context.Background(), queue)
		if is != nil && !errors.Is(err, is) || is == nil && len(says) == 0 && err != nil {
			t.Errorf("%s: %v, want %v", what, err, is)
		}
		for _, s := range says {
			if err == nil || !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v, want it to say %s", what, err, s)
			}
		}
	}
	want("a name that cannot be", "a b", xstreamq.ErrInvalidName)
	want("no queue", "q", xstreamq.ErrNoQueue, `queue "q"`, r.key("queue"))
	r.do("HSET @registry q/g {}")
	want("a queue that a group waits for", "q", nil)
	r.do("DEL @registry\nZADD @delayed 1 m")
	want("a queue of delayed messages", "q", nil)
	r.do("SET @queue x")
	want("a wrong type", "q", nil, "XQTYPE", r.key("queue"))
	r.do("DEL @queue\nSET @registry x")
	want("a registry of the wrong type", "q", nil, "WRONGTYPE", r.key("registry"))
}

// Compact ends with its context, between two pages too, and says what it had done by then.
func TestCompactEndsWithItsContext(t *testing.T) {
	t.Parallel()
	const n = 50_000
	prefix := redistest.Prefix(t)
	ctx, cancel := context.WithCancel(t.Context())
	scripts := 0
	rc := &hooked{Client: redistest.Client(t), after: func(command string) {
		if strings.HasPrefix(command, "EVAL") {
			if scripts++; scripts == 4 { // the script is not known to every server: one of them may be its first
				cancel()
			}
		}
	}}
	r := &forgetRig{t: t, prefix: prefix, redis: redistest.Client(t), client: stopNew(t, rc, xstreamq.Config{KeyPrefix: prefix})}
	r.queueOf(n)
	r.do(fmt.Sprintf("XGROUP CREATE @queue g %d-0", n))
	got, err := r.client.Compact(ctx, "q")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a cancelled context", err)
	}
	if left := r.int("XLEN @queue"); got.Trimmed == 0 || got.Trimmed > n-left || n-left > n/2 {
		t.Errorf("it says that it trimmed %d; %d of %d are left", got.Trimmed, left, n)
	}
}
