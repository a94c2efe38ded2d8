package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// worker runs a command for each message of a group.
type worker struct {
	app     *app
	queue   string
	options workOptions
	command *commandLine
	limit   *startLimit
	report  *reporter
	log     *slog.Logger

	signalled context.Context         // ended by the first signal
	end       context.CancelCauseFunc // begins the drain
}

// Reasons for the drain that are no errors.
var (
	errEnough      = errors.New("--max is reached")
	errNothingLeft = errors.New("the group is empty")
)

// newWorker finds the command, which is not sought again.
func (a *app) newWorker(queue string, command []string, o workOptions) (*worker, error) {
	stdout := a.out
	if a.json {
		stdout = a.err
	}
	if file, ok := fileOf(stdout); ok {
		stdout = file // which the command writes to itself
	}
	found, err := newCommandLine(command, stdout, a.err, o.killAfter)
	if err != nil {
		return nil, err
	}
	w := &worker{app: a, queue: queue, options: o, command: found, log: slog.New(a.logHandler())}
	w.report = &reporter{app: a, log: w.log, written: map[xstreamq.Outcome]int{}}
	w.limit = &startLimit{most: o.max, spent: func() { w.end(errEnough) }}
	return w, nil
}

// run works until a signal, --max or --exit-when-empty ends it: none of these is an error.
func (w *worker) run(cmd *cobra.Command) error {
	defer w.command.close()
	signalled, signal := context.WithCancelCause(context.Background())
	defer signal(nil)
	working, end := context.WithCancelCause(signalled)
	defer end(nil)
	w.signalled, w.end = signalled, end
	defer onSignals(cmd.Context(), signal, func(s os.Signal) {
		w.command.killAll()
		die(s)
	})()

	client, err := w.start(cmd)
	if client != nil {
		defer client.Close()
	}
	if err != nil {
		if cmd.Context().Err() != nil {
			return nil
		}
		return err
	}
	w.log.Info("working", "queue", w.queue, "group", w.options.group)
	if w.options.exitWhenEmpty {
		go func() {
			end(untilEmpty(working, w.log, func(ctx context.Context) (xstreamq.Depth, error) {
				return client.Depth(ctx, w.queue, w.options.group)
			}))
		}()
	}
	<-working.Done()
	return w.stop(client, context.Cause(working))
}

// start connects and begins to work, within --timeout. The client is to be closed also after an error.
func (w *worker) start(cmd *cobra.Command) (client *xstreamq.Client, err error) {
	w.app.conn.retry = true // a worker outlives what is wrong for a while
	err = w.app.bounded(cmd, 0, func(ctx context.Context) error {
		if client, err = w.app.openWith(w.config()); errors.Is(err, xstreamq.ErrInvalidConfig) {
			return usageError{err}
		} else if err != nil {
			return err
		}
		queue, err := xstreamq.NewQueue(client, w.queue, xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
		if err != nil {
			return usageError{err}
		}
		options := w.options.subscription()
		options.OnDeadLetter = w.buried
		if _, err := queue.Subscribe(w.options.group, w.handle, options); err != nil {
			return usageError{err}
		}
		return client.Start(ctx)
	})
	return client, err
}

func (w *worker) config() xstreamq.Config {
	return xstreamq.Config{
		Logger:       w.log,
		ConsumerName: w.options.consumer,
		Observer:     w.report.observer(),
		// Two thirds of it are for commands that were told to end at the drain deadline.
		CancelGrace: (w.command.waitDelay() + 400*time.Millisecond) * 3 / 2,
	}
}

// noLimit is for a drain that nobody waits for.
const noLimit = math.MaxInt64

// stop drains. Commands get --drain-timeout after a signal; else they may take their time.
func (w *worker) stop(client *xstreamq.Client, why error) error {
	w.log.Info("draining", "reason", why.Error())
	ctx, cancel := context.WithTimeout(context.Background(), noLimit)
	defer cancel()
	defer context.AfterFunc(w.signalled, func() { time.AfterFunc(w.options.drain, cancel) })()
	err := client.Stop(ctx)
	w.log.Info("stopped", w.report.summary()...)
	if n := w.report.unwritten(); err == nil && n > 0 {
		err = fmt.Errorf("what became of %s could not be written; so much comes again", plural(n, "message", "messages"))
	}
	if errors.Is(why, errEnough) || errors.Is(why, errNothingLeft) || w.signalled.Err() != nil {
		return err
	}
	return errors.Join(why, err)
}

// handle runs the command for one message.
func (w *worker) handle(ctx context.Context, m *xstreamq.Message[[]byte]) error {
	if !w.limit.reserve() {
		return xstreamq.Release(errEnough)
	}
	began := time.Now()
	e, err := w.command.run(ctx, m.Body, environment(&m.Delivery), w.limit.start)
	if err != nil {
		w.limit.unused()
		return w.notStarted(ctx, m, err)
	}
	took := time.Since(began)
	why := errors.New(e.text())
	v := verdictOf(e, func() bool { return ctx.Err() == nil && w.stopping() })
	if v == failed {
		if trouble := outputTrouble(w.command.stdout); trouble != nil {
			v = givenBack
			w.end(trouble)
		}
	}
	w.tell(ctx, m, v, &e, took, why)
	return v.errorFor(why)
}

// signalNotice is how much later than a command this process may learn that both are to end.
const signalNotice = 500 * time.Millisecond

// stopping reports whether a signal has asked for an end, or does so in a moment.
func (w *worker) stopping() bool {
	select {
	case <-w.signalled.Done():
		return true
	case <-time.After(signalNotice):
		return false
	}
}

// tell reports a delivery.
func (w *worker) tell(ctx context.Context, m *xstreamq.Message[[]byte], v verdict, e *exit, took time.Duration, why error) {
	cause := endedEarly(ctx)
	last := w.options.retries >= 0 && m.Retries >= w.options.retries
	fate := v.fate(cause, last)
	switch {
	case fate == fateAck:
		why = nil
	case cause != nil:
		why = fmt.Errorf("%w: %w", cause, why)
	}
	if err := w.report.tell(&m.Delivery, fate, e, took, why); err != nil {
		w.end(fmt.Errorf("what is to become of %s cannot be printed: %w", m.OriginalID, err))
	}
}

// startPause is how long a worker rests that could not start a command: the next one would fare no better.
const startPause = time.Second

// notStarted gives a message back, unless its headers are what is in the way.
func (w *worker) notStarted(ctx context.Context, m *xstreamq.Message[[]byte], err error) error {
	v := givenBack
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, syscall.E2BIG):
		v = failed
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ENOEXEC):
		w.end(err)
	default:
		select {
		case <-time.After(startPause):
		case <-w.signalled.Done():
		case <-ctx.Done():
		}
	}
	w.tell(ctx, m, v, nil, 0, err)
	return v.errorFor(err)
}
