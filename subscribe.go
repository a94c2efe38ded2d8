package xstreamq

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq/internal/batch"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redisconn"
	"github.com/xstreamq/xstreamq/internal/service"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Subscription is one group of a queue in this process.
type Subscription struct{ s *subscription }

// Subscribe registers a handler for a group. It checks everything and talks to nobody; reading begins with Start, or at once
// when the client runs already. Every group of a queue gets every message; the processes of one group share them.
//
// The same queue and group twice in one client is ErrAlreadySubscribed.
func (q *Queue[T]) Subscribe(group string, handle Handler[T], opts SubscribeOptions) (*Subscription, error) {
	if err := checkName("group", group); err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, fmt.Errorf("%w: the handler of group %q is nil", ErrInvalidConfig, group)
	}
	opts = opts.withDefaults()
	if err := opts.validate(q.name, group); err != nil {
		return nil, err
	}
	s := newSubscription(q.client, q.name, group, opts, newInvoker(q, group, handle, opts.Middleware))
	if err := q.client.add(s); err != nil {
		return nil, err
	}
	return &Subscription{s}, nil
}

// Ready waits until the group exists and its workers run. Before Start it waits for that too. It returns ErrStopped when the
// subscription was stopped instead.
func (s *Subscription) Ready(ctx context.Context) error {
	select {
	case <-s.s.ready:
		return nil
	case <-s.s.quit:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Unsubscribe drains this subscription, as Client.Stop drains all of them, and takes it off the client. The group and its
// messages stay in Redis. Safe more than once. Called by a handler with its own context it only begins the drain.
func (s *Subscription) Unsubscribe(ctx context.Context) error {
	if fromHandler(ctx, s.s.client) {
		go func() { _ = s.unsubscribe(context.WithoutCancel(ctx)) }() // a later call returns the same error
		return nil
	}
	return s.unsubscribe(ctx)
}

func (s *Subscription) unsubscribe(ctx context.Context) error {
	c := s.s.client
	ctx, cancel := redisconn.Bound(ctx, c.cfg.DrainTimeout)
	defer cancel()
	err := s.s.stop(ctx)
	c.remove(s.s)
	return err
}

func (c *Client) add(s *subscription) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == stopping {
		return ErrStopped
	}
	for _, other := range c.subs {
		if other.queue == s.queue && other.group == s.group {
			return fmt.Errorf("%w: queue %q, group %q", ErrAlreadySubscribed, s.queue, s.group)
		}
	}
	c.subs = append(c.subs, s)
	if c.state == started {
		s.launch(c.base)
	}
	return nil
}

func (c *Client) remove(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := make([]*subscription, 0, len(c.subs))
	for _, other := range c.subs {
		if other != s {
			kept = append(kept, other)
		}
	}
	c.subs = kept
}

// subscription is the engine of one group in this process: it reads, hands to workers, settles, and runs the loops around that.
// It does not know the type of the bodies.
type subscription struct {
	client       *Client
	queue, group string
	opts         SubscribeOptions
	consumer     string
	log          *scopedLog
	newInvoke    func() invoke

	pool      *pool
	queueLane *lane
	retryLane *lane
	lanes     []*lane

	loops     []*service.Loop
	settler   *service.Loop
	promoter  *service.Loop
	unwritten unsettled
	owner     atomic.Pointer[string] // the node of a cluster that has the queue; nil = not known
	deaths    chan string

	workCtx   context.Context // parent of the handlers' contexts; ends at the drain deadline
	cutWork   context.CancelCauseFunc
	settleCtx context.Context // of writes; outlives workCtx
	cutSettle context.CancelFunc
	draining  chan struct{} // closed when the drain begins

	workers  sync.WaitGroup
	notifier sync.WaitGroup
	bringUp  sync.WaitGroup // the goroutine that launch starts

	ready chan struct{}
	quit  chan struct{} // closed when stop begins

	mu       sync.Mutex
	prepared bool // the group existed when Start looked
	launched bool
	running  bool
	halted   bool
	stopOnce sync.Once
	stopErr  error
	over     chan struct{} // closed when nothing more is written
	gone     chan struct{} // closed when stop has ended
}

// lane is one of the two streams that a group reads: the queue, or its retry stream.
type lane struct {
	keys  keys.Set
	group string // consumer group on keys.Source
	ours  bool   // only the engine writes to it, and what is ended is deleted
	acks  *batch.Batch[*delivery]
	read  *laneReader
}

func newSubscription(c *Client, queue, group string, opts SubscribeOptions, newInvoke func() invoke) *subscription {
	set := keys.ForGroup(c.cfg.KeyPrefix, queue, group)
	s := &subscription{
		client: c, queue: queue, group: group, opts: opts, newInvoke: newInvoke,
		consumer: consumerName(c.cfg.ConsumerName, opts),
		log:      c.log.scoped(queue+"/"+group, "queue", queue, "group", group),
		pool:     newPool(opts.Concurrency, opts.Prefetch),
		draining: make(chan struct{}),
		ready:    make(chan struct{}),
		quit:     make(chan struct{}),
		over:     make(chan struct{}),
		gone:     make(chan struct{}),
		deaths:   make(chan string, deathsKept),
	}
	s.queueLane = &lane{keys: set, group: group}
	s.retryLane = &lane{keys: set.OnRetry(group), group: keys.RetryGroup(group), ours: true}
	s.lanes = []*lane{s.queueLane, s.retryLane}
	return s
}

// consumerName is unique per subscription, and ends in the length of its leases for others to see.
func consumerName(base string, opts SubscribeOptions) string {
	lease := ceilMillis(opts.VisibilityTimeout)
	if opts.NoVisibilityTimeout {
		lease = 0
	}
	return fmt.Sprintf("%s-%s~%d", base, nonce(), lease)
}

// launch begins at once when the group was prepared; else in a goroutine that tries until it works or is stopped. Called with
// the client's mu held.
func (s *subscription) launch(base context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.launched || s.halted {
		return
	}
	s.launched = true
	if s.prepared {
		s.begin(base)
		return
	}
	s.bringUp.Go(func() {
		ctx, cancel := context.WithCancel(base)
		defer cancel()
		go func() {
			select {
			case <-s.quit:
				cancel()
			case <-ctx.Done():
			}
		}()
		if s.prepareForever(ctx) != nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.halted {
			s.begin(base)
		}
	})
}

// begin starts the workers and loops. Called with mu held.
func (s *subscription) begin(base context.Context) {
	values := context.WithValue(base, clientKey{}, s.client)
	values = context.WithValue(values, drainingKey{}, (<-chan struct{})(s.draining))
	s.workCtx, s.cutWork = context.WithCancelCause(values)
	s.settleCtx, s.cutSettle = context.WithCancel(context.WithoutCancel(base))
	s.settler, s.promoter = s.newSettler(), s.newPromoter()
	for _, l := range s.lanes {
		l.acks = batch.New(ackBatch, ackCrowd, ackDelay, func(ds []*delivery) { s.flushAcks(l, ds) })
		l.read = s.newReader(l)
		s.loops = append(s.loops, l.read.loop)
	}
	s.loops = append(s.loops, s.settler, s.newCompactor(), s.newReaper(), s.promoter)
	if !s.opts.NoVisibilityTimeout {
		s.loops = append(s.loops, s.newRenewer())
		for _, l := range s.lanes {
			s.loops = append(s.loops, s.newSweeper(l))
		}
	}
	if follower := s.newFollower(); follower != nil {
		s.loops = append(s.loops, follower)
	}
	for range s.opts.Concurrency {
		s.workers.Go(s.work)
	}
	s.notifier.Go(s.notify)
	for _, l := range s.loops {
		l.Start(s.settleCtx)
	}
	s.running = true
	close(s.ready)
}

// loopError returns what logs the failures of a loop.
func (s *subscription) loopError(loop string) func(error) {
	return func(err error) {
		s.client.heed(err)
		if s.settleCtx.Err() == nil {
			s.log.Warn(loop+" failed, trying again", "error", err)
		}
	}
}

// invoke decodes one entry and calls the handler.
type invoke func(ctx context.Context, e *wire.Entry) error

// slab is how many messages are allocated at once: few enough that one kept by a handler does not pin many.
const slab = 16

type messageKey struct{}

// undecodableError is what invoke returns for a body that no handler may see.
type undecodableError struct{ err error }

func (e *undecodableError) Error() string { return e.err.Error() }
func (e *undecodableError) Unwrap() error { return e.err }

// newInvoker returns what makes an invoke for each worker.
func newInvoker[T any](q *Queue[T], group string, handle Handler[T], wrap []Middleware) func() invoke {
	call := handle
	if len(wrap) > 0 {
		// The chain is built once, so the message travels in the context.
		next := func(ctx context.Context, _ *Delivery) error {
			m, ok := ctx.Value(messageKey{}).(*Message[T])
			if !ok {
				return fmt.Errorf("xstreamq: a middleware must pass on a context made from the one it got")
			}
			return handle(ctx, m)
		}
		for _, w := range slices.Backward(wrap) {
			next = w(next)
		}
		call = func(ctx context.Context, m *Message[T]) error {
			return next(context.WithValue(ctx, messageKey{}, m), &m.Delivery)
		}
	}
	return func() invoke {
		var free []Message[T]
		return func(ctx context.Context, e *wire.Entry) error {
			if len(free) == 0 {
				free = make([]Message[T], slab)
			}
			m := &free[0]
			free = free[1:]
			if err := q.decode(e.Body, &m.Body); err != nil {
				return &undecodableError{err}
			}
			m.Delivery = deliveryOf(e, q.name, group)
			return call(ctx, m)
		}
	}
}

// clock is the time between two looks at something that has no signal.
const clock = 5 * time.Millisecond
