package xstreamq_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P8: an Observer that panics takes down neither the process nor a message: everything goes on as without it, and the log says what
// happened.
func TestPanicOfAnObserverIsLogged(t *testing.T) {
	t.Parallel()
	const cry = "the metrics broke"
	for name, observer := range map[string]xstreamq.Observer{
		"Published": {Published: func(string, int, error) { panic(cry) }},
		"Handled":   {Handled: func(xstreamq.Handled) { panic(cry) }},
		"Settled":   {Settled: func(xstreamq.Settled) { panic(cry) }},
		"Swept":     {Swept: func(xstreamq.Swept) { panic(cry) }},
		"Promoted":  {Promoted: func(string, string, int, int) { panic(errors.New(cry)) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log faultLog
			r := newForeignRig(t, xstreamq.Config{Observer: observer, Logger: slog.New(&log)})
			lost := r.add("body", "lost")
			r.vanish("g", "100") // for a sweep
			var inbox foreignInbox
			r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
				inbox.add(m.Delivery)
				switch {
				case m.Retries == 0 && string(m.Raw) == "fails once":
					return errors.New("no")
				case string(m.Raw) == "dies":
					return xstreamq.DeadLetter(errors.New("never"))
				}
				return nil
			}, xstreamq.SubscribeOptions{VisibilityTimeout: 2 * time.Second, Backoff: xstreamq.Backoff{Initial: 5 * time.Millisecond}})
			r.start()
			want := map[string]int{ // runs
				lost:                    1,
				r.publish("fails once"): 2,
				r.publish("dies"):       1,
				r.publish("later", xstreamq.WithDelay(time.Millisecond)): 1,
			}
			for _, res := range r.queue.PublishBatch(t.Context(), []xstreamq.Outgoing[[]byte]{{Body: []byte("in a batch")}}) {
				if res.Err != nil {
					t.Error(res.Err)
				}
				want[res.ID] = 1
			}
			r.waitEnded("g")
			redistest.WaitFor(t, foreignWait, "a line in the log", func() bool { return log.has("an Observer panicked", cry) })
			if err := r.client.Healthy(t.Context()); err != nil {
				t.Error(err)
			}
			r.stop()
			for id, n := range want {
				if got := len(inbox.of(id)); got != n {
					t.Errorf("%s ran %d times, want %d", id, got, n)
				}
			}
			if n := r.len(".g.dlq"); n != 1 {
				t.Errorf("%d dead letters, want 1", n)
			}
			if t.Failed() {
				t.Logf("log:\n%s", &log)
			}
		})
	}
}
