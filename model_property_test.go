package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Outcomes of one run of a handler, in the model.
const (
	ends     = "ends"
	fails    = "fails"
	waits    = "fails, and says when to retry"
	panics   = "panics"
	releases = "releases"
	discards = "discards"
	rejects  = "rejects"
)

// script is what becomes of each delivery of one message; after its end the message is handled.
type script []string

func (s script) at(delivery int) string {
	if delivery < len(s) {
		return s[delivery]
	}
	return ends
}

// fate is where a message ends, and the failures that each of its deliveries saw.
type fate struct {
	Reason  xstreamq.Reason // empty: handled
	RC      string          // of the dead letter
	Retries []int
}

// predict is the model: what the budget makes of a script.
func (s script) predict(maxRetries int) fate {
	var f fate
	failures := 0
	for i := 0; ; i++ {
		f.Retries = append(f.Retries, failures)
		switch s.at(i) {
		case ends, discards:
			return f
		case rejects:
			f.Reason, f.RC = xstreamq.Rejected, strconv.Itoa(failures+1)
			return f
		case releases:
		default:
			failures++
			if failures > maxRetries {
				f.Reason, f.RC = xstreamq.Failed, strconv.Itoa(failures)
				return f
			}
		}
	}
}

// order is one message of a run: its script, how it is published, and what was seen of it.
type order struct {
	script    script
	delay     time.Duration
	foreign   bool // added by a client that knows nothing of the engine
	malformed bool // never reaches a handler
	id        string

	mu   sync.Mutex
	seen fate
	bad  string
}

func (o *order) handle(m *xstreamq.Message[[]byte]) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	run := len(o.seen.Retries)
	o.seen.Retries = append(o.seen.Retries, m.Retries)
	if m.Attempt != m.Retries+1 || m.LostLeases != 0 || o.delay == 0 && run == 0 && m.ID != m.OriginalID {
		o.bad = fmt.Sprintf("delivery %d: %+v", run, m.Delivery)
	}
	switch o.script.at(run) {
	case fails:
		return errors.New("fails")
	case waits:
		return xstreamq.RetryAfter(time.Millisecond, errors.New("fails"))
	case panics:
		panic("panics")
	case releases:
		return xstreamq.Release(nil)
	case discards:
		return xstreamq.Discard(nil)
	case rejects:
		return xstreamq.DeadLetter(nil)
	}
	return nil
}

// predict is the fate of a message by the model.
func (o *order) predict(maxRetries int) fate {
	if o.malformed {
		return fate{Reason: xstreamq.Undecodable}
	}
	return o.script.predict(maxRetries)
}

func drawOrders(t *rapid.T) []*order {
	outcome := rapid.SampledFrom([]string{ends, fails, fails, waits, panics, releases, discards, rejects})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *order {
		o := &order{
			script:    rapid.SliceOfN(outcome, 0, 6).Draw(t, "script"),
			foreign:   rapid.Bool().Draw(t, "foreign"),
			malformed: rapid.IntRange(0, 9).Draw(t, "malformed") == 9,
		}
		if !o.foreign {
			o.delay = time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 30}).Draw(t, "delay")) * time.Millisecond
		}
		return o
	}), 1, 20).Draw(t, "orders")
}

// numberCodec takes nothing but numbers.
type numberCodec struct{ xstreamq.Bytes }

func (numberCodec) Decode(data []byte, v *[]byte) error {
	*v = data
	if _, err := strconv.Atoi(string(data)); err != nil {
		return err
	}
	return nil
}

// Conservation (P1, P2, P5): whatever handlers do with their messages, each ends in the one place, and after the deliveries, that the
// budgets say.
func TestMessagesEndWhereTheModelSays(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rc := redistest.Client(t)
	c := open(t, xstreamq.Config{KeyPrefix: prefix, CompactEvery: 5 * time.Millisecond})
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		r := &foreignRig{t: t, prefix: prefix, name: "q" + strconv.Itoa(runs), redis: rc, client: c}
		r.queue = foreignQueue(t, c, r.name, xstreamq.WithCodec[[]byte](numberCodec{}))
		checkModel(rt, r, drawOrders(rt))
	})
}

func checkModel(t *rapid.T, r *foreignRig, orders []*order) {
	maxRetries := rapid.SampledFrom([]int{xstreamq.NoRetries, 1, 2, 4, xstreamq.RetryForever}).Draw(t, "MaxRetries")
	opts := xstreamq.SubscribeOptions{
		MaxRetries:  maxRetries,
		Concurrency: rapid.IntRange(1, 8).Draw(t, "Concurrency"),
		Prefetch:    rapid.IntRange(-1, 8).Draw(t, "Prefetch"),
		Dedupe:      time.Duration(rapid.IntRange(0, 1).Draw(t, "Dedupe")) * time.Hour,
		Backoff:     xstreamq.Backoff{Initial: time.Millisecond, Max: 5 * time.Millisecond},
	}
	sub := r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		i, err := strconv.Atoi(string(m.Body))
		if err != nil {
			return err
		}
		return orders[i].handle(m)
	}, opts)
	if rapid.Bool().Draw(t, "wait until ready") {
		if err := sub.Ready(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	byID := map[string]*order{}
	for i, o := range orders {
		o.send(r, i)
		byID[o.id] = o
	}
	if err := sub.Ready(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.waitEnded("g")
	if err := sub.Unsubscribe(context.Background()); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.entries(".g.dlq") {
		o := byID[e.get("oid")]
		if o == nil || o.seen.Reason != "" {
			t.Fatalf("dead letter %q is of no message, or the second one", e.Fields)
		}
		o.seen.Reason, o.seen.RC = xstreamq.Reason(e.get("reason")), e.get("rc")
	}
	limit := maxRetries
	if maxRetries == xstreamq.NoRetries {
		limit = 0
	}
	for i, o := range orders {
		if diff := cmp.Diff(o.predict(limit), o.seen); diff != "" || o.bad != "" {
			t.Errorf("message %d, script %q, MaxRetries %d %s (-model +engine):\n%s", i, o.script, maxRetries, o.bad, diff)
		}
	}
}

// send publishes an order its way.
func (o *order) send(r *foreignRig, i int) {
	body := strconv.Itoa(i)
	if o.malformed {
		body = "x"
	}
	if o.foreign {
		o.id = r.add("rc", "7", "body", body, "lc", "7")
		return
	}
	o.id = r.publish(body, xstreamq.WithDelay(o.delay))
}
