package xstreamq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// P1: an error of Publish says whether the message may have been stored, also when Close cuts the connection under a command that
// Redis has carried out. After Close nothing is sent, and the error says that.
func TestPublishInFlightDuringClose(t *testing.T) {
	t.Parallel()
	publishes := map[string]func(*xstreamq.Queue[string]) error{
		"Publish": func(q *xstreamq.Queue[string]) error {
			_, err := q.Publish(context.Background(), "x")
			return err
		},
		"Publish with a delay": func(q *xstreamq.Queue[string]) error {
			_, err := q.Publish(context.Background(), "x", xstreamq.WithDelay(time.Hour))
			return err
		},
		"PublishBatch": func(q *xstreamq.Queue[string]) error {
			return q.PublishBatch(context.Background(), []xstreamq.Outgoing[string]{{Body: "x"}})[0].Err
		},
		"PublishBatch with a delay": func(q *xstreamq.Queue[string]) error {
			options := []xstreamq.PublishOption{xstreamq.WithDelay(time.Hour)}
			return q.PublishBatch(context.Background(), []xstreamq.Outgoing[string]{{Body: "x", Options: options}})[0].Err
		},
	}
	for name, publish := range publishes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rig := newForeignRig(t, xstreamq.Config{})
			stored := func() int64 { return rig.len("") + rig.len(".delayed") }
			proxy := redistest.NewProxy(t, redistest.URL(t))
			c := stopConnect(t, "open", proxy.URL(), xstreamq.Config{KeyPrefix: rig.prefix})
			q := stopQueue(t, c, "q")
			if err := publish(q); err != nil { // Redis knows the script from now on
				t.Fatal(err)
			}
			proxy.SwallowReplies()
			outcome := make(chan error, 1)
			go func() { outcome <- publish(q) }()
			redistest.WaitFor(t, foreignWait, "a message whose publisher knows nothing of it", func() bool { return stored() == 2 })
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if err := foreignAwait(t, outcome); !errors.Is(err, xstreamq.ErrPublishUncertain) {
				t.Errorf("in flight: %v, want ErrPublishUncertain", err)
			}
			proxy.Pass()
			if err := publish(q); !errors.Is(err, xstreamq.ErrStopped) || errors.Is(err, xstreamq.ErrPublishUncertain) {
				t.Errorf("after Close: %v, want ErrStopped and no doubt", err)
			}
			if n := stored(); n != 2 {
				t.Errorf("%d messages are stored, want 2", n)
			}
		})
	}
}
