package xstreamq_test

import (
	"context"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1, P3, P5: the server freezes time and again, for longer than a lease, so every sweep is late and all leases look old. A message of
// a worker that lives runs once all the same: its renewals are on their way. Those of a worker that is gone are taken over.
func TestServerThatFreezesTimeAndAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: eight freezes take half a minute, and -short was asked for")
	}
	t.Parallel()
	const lease = 3 * time.Second
	server := redistest.Start(t, redistest.Options{})
	r := newFaultRig(t, server)
	release := make(chan struct{})
	opts := xstreamq.SubscribeOptions{VisibilityTimeout: lease, Backoff: faultQuick}
	handle := func(ctx context.Context, m *xstreamq.Message[string]) error {
		if m.Body == "living" {
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
		return context.Cause(ctx)
	}
	r.do("XGROUP", "CREATE", r.keys.Queue, faultGroup, "0", "MKSTREAM")
	r.do("XGROUP", "CREATE", r.keys.Retry, keys.RetryGroup(faultGroup), "0", "MKSTREAM")
	for _, body := range []string{"gone", "gone too"} {
		r.do("XADD", r.keys.Queue, "*", "body", `"`+body+`"`)
	}
	r.do("XREADGROUP", "GROUP", faultGroup, "vanished~3000", "STREAMS", r.keys.Queue, ">")
	_, q := r.worker(opts, handle)
	r.worker(opts, handle)
	r.publish(q, "living")
	redistest.WaitFor(t, faultPatience, "a handler at work", func() bool { return r.runs.active() == 1 })
	for range 8 {
		server.Pause()
		r.wait(lease + 200*time.Millisecond)
		server.Resume()
		r.wait(150 * time.Millisecond)
		if twice := r.places().twice(); len(twice) > 0 {
			t.Errorf("in two places: %v", twice)
		}
	}
	r.handled([]string{"gone", "gone too"})
	if run := r.runs.get("living"); run.begun != 1 || run.lost > 0 || run.cause != nil {
		t.Errorf("the living worker's message: %+v", run)
	}
	close(release)
	r.handled([]string{"living"})
	if dead := r.drained(); len(dead) > 0 {
		t.Errorf("dead letters: %v", dead)
	}
	for _, body := range []string{"gone", "gone too"} {
		if run := r.runs.get(body); run.begun != 1 || run.lost != 1 {
			t.Errorf("the message %q of the vanished worker: %+v", body, run)
		}
	}
}
