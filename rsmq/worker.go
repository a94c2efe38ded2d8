package rsmq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Handler handles one message. nil deletes it; ErrKeep leaves it, so that it comes again when it is visible; so does any other error, which
// is reported, and a panic. ctx ends with that of Run, or when WorkerOptions.Timeout has passed.
type Handler func(ctx context.Context, m Message) error

// ErrKeep is what a Handler returns to leave a message without an error.
var ErrKeep = errors.New("rsmq: keep the message")

// ErrHandlerTimeout is the cause of a handler's context that ends after WorkerOptions.Timeout.
var ErrHandlerTimeout = errors.New("rsmq: handler timeout")

// WorkerOptions are for one worker. The zero value is what the Node package rsmq-worker does, less its defects.
type WorkerOptions struct {
	// Intervals are the waits between polls: the first one after a handled message, the next one after each poll that finds nothing, the last
	// one again and again. After an error it is at least 50ms. Default 0, 1s, 5s, 10s. Negative is an error.
	Intervals []time.Duration
	// Invisible is how long a received message is hidden, to the millisecond and whatever the queue says. Default 30s. Negative is an error.
	Invisible time.Duration
	// Renew hides the message on, every third of Invisible, for as long as its handler runs.
	Renew bool
	// MaxReceiveCount is the delivery at which a message is given up: it is deleted and not handled. Default 10. Negative: never.
	MaxReceiveCount int
	// SkipExceedCheck, if set, may spare a message that.
	SkipExceedCheck func(Message) bool
	// Timeout is how long a handler may take. Then its context ends, the message is kept, and the worker goes on, also beside a handler that
	// does not return. Default 3s. Negative: no limit.
	Timeout time.Duration
	// DefaultDelay is for Send. Default 1s. Negative: none.
	DefaultDelay time.Duration
	// NodeCompatible also hands over a message that was given up, as rsmq-worker does.
	NodeCompatible bool
	// Events are told what happens.
	Events WorkerEvents
}

func (o WorkerOptions) withDefaults() WorkerOptions {
	if len(o.Intervals) == 0 {
		o.Intervals = []time.Duration{0, time.Second, 5 * time.Second, 10 * time.Second}
	}
	o.Intervals = slices.Clone(o.Intervals)
	setDefault(&o.Invisible, 30*time.Second)
	setDefault(&o.MaxReceiveCount, 10)
	setDefault(&o.Timeout, 3*time.Second)
	setDefault(&o.DefaultDelay, time.Second)
	return o
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (o WorkerOptions) validate() error {
	var errs []error
	for _, d := range o.Intervals {
		if d < 0 {
			errs = append(errs, fmt.Errorf("an interval is negative: %s", d))
		}
	}
	if err := checkTime("vt", &o.Invisible); err != nil {
		errs = append(errs, fmt.Errorf("Invisible is %s: %w", o.Invisible, err))
	}
	if o.DefaultDelay > MaxTime {
		errs = append(errs, fmt.Errorf("DefaultDelay is %s: %w", o.DefaultDelay, checkTime("delay", &o.DefaultDelay)))
	}
	return errors.Join(errs...)
}

// Worker polls one queue and handles its messages, one after the other. Its methods may be called from several goroutines.
type Worker struct {
	client *Client
	queue  string
	handle Handler
	opts   WorkerOptions

	left sync.WaitGroup // handlers and renewers

	mu        sync.Mutex
	intervals []time.Duration
	stop      context.CancelFunc // of the Run under way
}

// ErrRunning is what Run returns when another Run of the same worker has not returned.
var ErrRunning = errors.New("rsmq: the worker runs already")

// NewWorker returns a worker of a queue. Run starts it.
func (c *Client) NewWorker(queue string, handle Handler, o WorkerOptions) (*Worker, error) {
	if handle == nil {
		return nil, errors.New("rsmq: NewWorker needs a handler")
	}
	o = o.withDefaults()
	if err := errors.Join(checkQueue(queue), o.validate()); err != nil {
		return nil, fmt.Errorf("rsmq: worker of %q: %w", queue, err)
	}
	return &Worker{client: c, queue: queue, handle: handle, opts: o, intervals: o.Intervals}, nil
}

// Run makes the queue if it does not exist, polls it and handles messages until ctx ends or Stop is called. It returns when all handlers have
// returned: nil. It goes on through outages. An error says that the queue cannot be made, for another reason than an outage, or that
// the client was closed. It may be called again after it returned.
func (w *Worker) Run(ctx context.Context) error {
	polling, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer w.end()
	if err := w.create(polling); err != nil || polling.Err() != nil {
		return err
	}
	tell(w.opts.Events.Ready)
	defer tell(w.opts.Events.Stopped)
	defer w.left.Wait()
	// The first poll that finds nothing waits the first interval.
	for step := 0; polling.Err() == nil; step++ {
		found, err := w.next(ctx, polling)
		if errors.Is(err, ErrClosed) {
			return err
		}
		if found {
			step = 0
		}
		pause := w.interval(step)
		if err != nil {
			w.failed(err, nil)
			pause = max(pause, retryFirst)
		}
		if !sleep(polling, pause) {
			break
		}
	}
	return nil
}

// Stop ends polling; Run returns when the handler under way has returned, whose context stays as it is. Without a Run it does nothing.
func (w *Worker) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		w.stop()
	}
}

// ChangeIntervals sets WorkerOptions.Intervals; none means the default. They count from the next wait on.
func (w *Worker) ChangeIntervals(intervals ...time.Duration) error {
	o := WorkerOptions{Intervals: intervals}.withDefaults()
	if err := o.validate(); err != nil {
		return fmt.Errorf("rsmq: worker of %q: %w", w.queue, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.intervals = o.Intervals
	return nil
}

func (w *Worker) interval(step int) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.intervals[min(step, len(w.intervals)-1)]
}

// begin returns the context of the polls: it ends with ctx, or by Stop.
func (w *Worker) begin(ctx context.Context) (context.Context, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stop != nil {
		return nil, ErrRunning
	}
	ctx, w.stop = context.WithCancel(ctx)
	return ctx, nil
}

func (w *Worker) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
	w.stop = nil
}

// create makes the queue, trying again while Redis is away.
func (w *Worker) create(ctx context.Context) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := w.client.CreateQueue(ctx, w.queue, QueueOptions{})
		if err == nil || errors.Is(err, ErrQueueExists) || ctx.Err() != nil {
			return nil
		}
		if lasting(err) {
			return err
		}
		w.failed(err, nil)
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

// next polls once, and handles what it finds. The end of polling does not end a receive under way, whose message would stay hidden; it is given
// back.
func (w *Worker) next(ctx, polling context.Context) (found bool, err error) {
	m, ok, err := w.client.ReceiveMessage(context.WithoutCancel(ctx), w.queue, ReceiveOptions{VisibilityTimeout: &w.opts.Invisible})
	if err != nil || !ok {
		return false, err
	}
	if polling.Err() != nil {
		_, err := w.client.hide(context.WithoutCancel(ctx), w.queue, m.ID, 0)
		return true, err
	}
	tellOf(w.opts.Events.Data, m)
	if w.exceeded(m) {
		tellOf(w.opts.Events.Exceeded, m)
		w.delete(ctx, m)
		if !w.opts.NodeCompatible {
			return true, nil
		}
	}
	w.work(ctx, m)
	return true, nil
}

func (w *Worker) exceeded(m Message) bool {
	if w.opts.MaxReceiveCount < 0 || m.ReceiveCount < int64(w.opts.MaxReceiveCount) {
		return false
	}
	return w.opts.SkipExceedCheck == nil || !w.opts.SkipExceedCheck(m)
}

// work has a message handled, and waits for that, or until it takes too long.
func (w *Worker) work(ctx context.Context, m Message) {
	handling, cancel := context.WithCancelCause(ctx)
	result := make(chan error, 1)
	w.left.Go(func() {
		err := errors.New("the handler called runtime.Goexit")
		defer func() {
			cancel(nil)
			result <- err
		}()
		err = w.call(handling, m)
	})
	if w.opts.Renew {
		w.left.Go(func() { w.renew(handling, m) })
	}
	var late <-chan time.Time
	if w.opts.Timeout > 0 {
		timer := time.NewTimer(w.opts.Timeout)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case err := <-result:
		w.settle(ctx, m, err)
	case <-late:
		cancel(ErrHandlerTimeout)
		tellOf(w.opts.Events.Timeout, m)
	}
}

// call runs the handler; a panic is an error of it.
func (w *Worker) call(ctx context.Context, m Message) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	return w.handle(ctx, m)
}

func (w *Worker) settle(ctx context.Context, m Message, err error) {
	switch {
	case err == nil:
		w.delete(ctx, m)
	case !errors.Is(err, ErrKeep):
		w.failed(err, &m)
	}
}

// delete deletes a message, also when the worker is just being stopped: it was handled.
func (w *Worker) delete(ctx context.Context, m Message) {
	if _, err := w.client.deletePage(context.WithoutCancel(ctx), w.client.keys(w.queue), []string{m.ID}); err != nil {
		w.failed(failed("delete from", w.queue, err, true), &m)
		return
	}
	tellOf(w.opts.Events.Deleted, m.ID)
}

// renew hides a message on until its handler has returned.
func (w *Worker) renew(ctx context.Context, m Message) {
	for sleep(ctx, w.opts.Invisible/3) {
		if _, err := w.client.hide(ctx, w.queue, m.ID, w.opts.Invisible); err != nil && ctx.Err() == nil {
			w.failed(err, &m)
		}
	}
}

// Send sends a message to the worker's queue. A nil delay is WorkerOptions.DefaultDelay.
func (w *Worker) Send(ctx context.Context, body string, delay *time.Duration) (string, error) {
	if delay == nil {
		delay = Duration(max(0, w.opts.DefaultDelay))
	}
	id, err := w.client.SendMessage(ctx, w.queue, body, SendOptions{Delay: delay})
	if err == nil {
		tellOf(w.opts.Events.New, id)
	}
	return id, err
}
