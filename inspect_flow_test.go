package xstreamq_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

var errInspect = errors.New("as planned")

// P1, as Depth shows it: each message that was published and is not finished is counted in exactly one place, at any moment of a run with failures,
// releases, retries at once and later, dead letters and trimming.
func TestDepthConservesMessages(t *testing.T) {
	t.Parallel()
	const messages = 1000
	var succeeded, acked atomic.Int64
	r := newInspectRig(t)
	worker := open(t, xstreamq.Config{KeyPrefix: r.prefix, CompactEvery: 20 * time.Millisecond, Observer: xstreamq.Observer{
		Settled: func(s xstreamq.Settled) {
			if s.Outcome == xstreamq.Acked {
				acked.Add(int64(s.Count))
			}
		},
	}})
	q := stopQueue(t, worker, "q")
	stopSubscribe(t, q, func(_ context.Context, m *xstreamq.Message[string]) error {
		n, _ := strconv.Atoi(m.Body)
		switch {
		case n%4 == 0: // dies
			return errInspect
		case n%4 == 1 && m.Retries == 0:
			return errInspect
		case n%4 == 2 && m.Retries == 0:
			return xstreamq.RetryAfter(0, errInspect)
		case n%8 == 3 && m.Retries == 0 && time.Since(m.PublishedAt) < 300*time.Millisecond:
			return xstreamq.Release(errInspect)
		}
		succeeded.Add(1) // before any write that ends it
		return nil
	}, xstreamq.SubscribeOptions{
		MaxRetries: 2, Concurrency: 5, VisibilityTimeout: 30 * time.Second, Backoff: xstreamq.Backoff{Initial: 20 * time.Millisecond, Max: 50 * time.Millisecond},
	})
	for i := range messages {
		stopPublish(t, q, strconv.Itoa(i))
	}
	r.run("XGROUP CREATE @queue g 0")
	stopStart(t, worker)

	looks := 0
	redistest.WaitFor(t, 60*time.Second, "the end of all messages", func() bool {
		for range 5 {
			most := messages - acked.Load() // those that Redis had ended, and we were told
			d := r.depth()
			least := messages - succeeded.Load()
			there := d.Backlog + d.Pending + d.Retry + d.Backoff + d.Dead
			if looks++; there < least || there > most || d.Backlog < 0 {
				t.Fatalf("%d messages are counted, there are %d to %d: %+v", there, least, most, d)
			}
			if d.Empty() != (there == d.Dead) {
				t.Fatalf("Empty says %v: %+v", d.Empty(), d)
			}
			if d.Empty() && d.Dead == messages/4 && acked.Load() == messages-messages/4 {
				return true
			}
		}
		return false
	})
	t.Logf("looked %d times", looks)
}

// A single message on its way between the places, and nothing else, never makes the group look empty.
func TestDepthNeverLooksEmpty(t *testing.T) {
	t.Parallel()
	r := newInspectRig(t)
	worker := open(t, xstreamq.Config{KeyPrefix: r.prefix, CompactEvery: 10 * time.Millisecond})
	q := stopQueue(t, worker, "q")
	var runs atomic.Int64
	stopSubscribe(t, q, func(context.Context, *xstreamq.Message[string]) error {
		runs.Add(1)
		return errInspect
	}, xstreamq.SubscribeOptions{MaxRetries: xstreamq.RetryForever, Backoff: xstreamq.Backoff{Initial: time.Millisecond, Max: 5 * time.Millisecond}})
	stopPublish(t, q, "x")
	stopStart(t, worker)
	var seen xstreamq.Depth // what was seen in each place
	looks := 0
	redistest.WaitFor(t, 60*time.Second, "100 runs of the handler, and a look at each place", func() bool {
		for range 20 {
			d := r.depth()
			if looks++; d.Backlog+d.Pending+d.Retry+d.Backoff != 1 || d.Empty() {
				t.Fatalf("one message is there, and counted is %+v", d)
			}
			seen.Pending += d.Pending
			seen.Backoff += d.Backoff
		}
		return runs.Load() > 100 && seen.Pending > 0 && seen.Backoff > 0
	})
	t.Logf("looked %d times at %d runs", looks, runs.Load())
}
