package xstreamq

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// Observer is told what happens, for metrics. Every func may be nil. They are called from many goroutines, on the path of the
// messages: they must return quickly. A panic is logged.
type Observer struct {
	// Published: one publish call on a queue; n messages were stored. For a batch, err joins what failed.
	Published func(queue string, n int, err error)
	// Handled: a handler returned, or a message was refused before it reached one.
	Handled func(Handled)
	// Settled: outcomes of deliveries were written to Redis.
	Settled func(Settled)
	// Swept: a sweep over pending entries moved some.
	Swept func(Swept)
	// Promoted: n messages became due: on the queue, or on the group's retry stream.
	Promoted func(queue, group string, queued, retried int)
}

// Handled is one run of a handler.
type Handled struct {
	Queue, Group string
	Outcome      Outcome
	Attempt      int
	Duration     time.Duration
	Err          error
}

// Settled is an outcome written for Count messages of one group.
type Settled struct {
	Queue, Group string
	Outcome      Outcome
	// Reason is set for Dead.
	Reason Reason
	Count  int
}

// Swept is what one sweep moved.
type Swept struct {
	Queue, Group string
	// Recovered lost leases go on to another worker.
	Recovered int
	// Released deliveries had been given back by their worker, or never started.
	Released int
	// Dead lists the reason of each dead letter.
	Dead []Reason
}

// Outcome is what became of a delivery.
type Outcome string

// Outcomes.
const (
	Acked     Outcome = "acked"     // handled
	Discarded Outcome = "discarded" // ended by Discard
	Skipped   Outcome = "skipped"   // ended by Dedupe: it had been handled before
	Retried   Outcome = "retried"   // failed, waits for its next attempt
	Released  Outcome = "released"  // given back, no budget spent
	Dead      Outcome = "dead"      // became a dead letter
	Late      Outcome = "late"      // succeeded after its lease was lost and the message had moved
	Lost      Outcome = "lost"      // failed after its lease was lost: nothing was changed
	Unknown   Outcome = "unknown"   // written at a second try that found it done already, or its lease lost
	Kept      Outcome = "kept"      // NoVisibilityTimeout: failed, stays pending
)

// Reason says why a message is a dead letter.
type Reason string

// Reasons.
const (
	Failed      Reason = "failed"      // MaxRetries used up
	LostLease   Reason = "lost-lease"  // MaxLostLeases used up
	Rejected    Reason = "rejected"    // DeadLetter
	Undecodable Reason = "undecodable" // the codec or Validate refused it
	NoBody      Reason = "no-body"     // an entry without a body
	BodyLost    Reason = "body-lost"   // the entry was deleted while it was pending
)

// Middleware wraps the handler of a subscription, for traces and metrics. The first one is outermost. It sees the raw
// delivery; next returns what the handler returned.
type Middleware func(next func(ctx context.Context, d *Delivery) error) func(ctx context.Context, d *Delivery) error

// observing survives a panic of an Observer's func. To be deferred around each call.
func (c *Client) observing() {
	if p := recover(); p != nil {
		log := c.log.scoped("observer")
		log.Error("an Observer panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}

func (c *Client) observePublished(queue string, n int, err error) {
	if tell := c.cfg.Observer.Published; tell != nil {
		defer c.observing()
		tell(queue, n, err)
	}
}

func (s *subscription) observeHandled(d *delivery, v verdict, took time.Duration, err error) {
	if tell := s.client.cfg.Observer.Handled; tell != nil {
		defer s.client.observing()
		tell(Handled{
			Queue: s.queue, Group: s.group, Outcome: v.outcome,
			Attempt: d.entry.Failures + d.entry.Lost + 1, Duration: took, Err: err,
		})
	}
}

func (s *subscription) observe(o Outcome, reason Reason, n int) {
	if tell := s.client.cfg.Observer.Settled; tell != nil && n > 0 {
		defer s.client.observing()
		tell(Settled{Queue: s.queue, Group: s.group, Outcome: o, Reason: reason, Count: n})
	}
}

// observeAcks tells about acks that were written for ds, of which so many were still pending.
func (s *subscription) observeAcks(ds []*delivery, ended int, again bool) {
	if s.client.cfg.Observer.Settled == nil {
		return
	}
	late := Late
	if again {
		late = Unknown
	}
	counts := map[Outcome]int{}
	for _, d := range ds {
		counts[d.outcome]++
	}
	// Which of them were late cannot be told: the handled ones are the likely ones.
	short := len(ds) - ended
	for _, o := range []Outcome{Acked, Discarded, Skipped} {
		n := min(short, counts[o])
		short -= n
		s.observe(o, "", counts[o]-n)
		s.observe(late, "", n)
	}
}

func (s *subscription) observeSwept(moved Swept) {
	tell := s.client.cfg.Observer.Swept
	if tell != nil && moved.Recovered+moved.Released+len(moved.Dead) > 0 {
		defer s.client.observing()
		tell(moved)
	}
}

func (s *subscription) observePromoted(queued, retried int64) {
	if tell := s.client.cfg.Observer.Promoted; tell != nil && queued+retried > 0 {
		defer s.client.observing()
		tell(s.queue, s.group, int(queued), int(retried))
	}
}
