// Package demo is the demonstration behind xstreamq demo: real payloads, failing handlers, dying workers, and a check at the
// end that every message is accounted for.
package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
)

const (
	queueName = "github-webhooks"
	// delay is that of the delayed message.
	delay = 2 * time.Second
	// patience bounds the wait for the last message. A run takes about four seconds.
	patience = 30 * time.Second
	// cleanupTime bounds the removal of the keys.
	cleanupTime = 10 * time.Second
)

// Options are what the user may choose.
type Options struct {
	// URL of the Redis to run on. Empty: an embedded server.
	URL string
	// Logger gets what the library logs. Nil: nothing is logged.
	Logger *slog.Logger
	// Progress is told how far the demonstration is.
	Progress Progress
}

var errInterrupted = errors.New("interrupted")

// run is one demonstration.
type run struct {
	url      string
	prefix   string
	logger   *slog.Logger
	progress Progress

	redis     rueidis.Client // plain, for what must not go through the library
	publisher *xstreamq.Client
	workers   []*worker
	doomed    *doomed
	ledger    ledger
	tally     *tally
	deadline  time.Time // when await gives up
}

// Run plays the demonstration and checks its outcome. The report is nil when it did not come to the check; an error besides a
// report says that the keys could not be removed. The end of ctx drains the workers and removes the keys.
func Run(ctx context.Context, opts Options) (report *Report, err error) {
	began := time.Now()
	events, err := loadPayloads()
	if err != nil {
		return nil, err
	}
	url := opts.URL
	if url == "" {
		server, err := startEmbedded()
		if err != nil {
			return nil, err
		}
		defer server.Close()
		url = server.url()
		opts.Progress.Say("started a server inside this process")
	}
	r := &run{
		url:      url,
		prefix:   "xstreamq-demo-" + strings.ToLower(rand.Text()[:10]) + ":",
		logger:   opts.Logger,
		progress: opts.Progress,
		tally:    newTally(),
		deadline: began.Add(patience),
	}
	if err := r.connect(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = errInterrupted
		}
		err = errors.Join(err, r.close())
	}()
	if err := r.play(ctx, events); err != nil {
		return nil, err
	}
	report, err = r.audit(ctx)
	if err != nil {
		return nil, err
	}
	report.Payloads = len(events)
	report.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	return report, nil
}

// connect makes the publisher, whose errors show no password, and the plain client.
func (r *run) connect() error {
	publisher, err := xstreamq.Open(r.url, xstreamq.Config{KeyPrefix: r.prefix, Logger: r.logger})
	if err != nil {
		return err
	}
	plain, err := dial(r.url)
	if err != nil {
		return errors.Join(err, publisher.Close())
	}
	r.publisher, r.redis = publisher, plain
	return nil
}

// play is the demonstration, in the order in which it can be watched.
func (r *run) play(ctx context.Context, events []webhook) error {
	if err := r.publish(ctx, events); err != nil {
		return err
	}
	if err := r.startDoomed(ctx); err != nil {
		return err
	}
	for _, name := range []string{"worker-1", "worker-2", "worker-3"} {
		if err := r.startWorker(ctx, name); err != nil {
			return err
		}
	}
	r.progress.Say("started worker-1, worker-2 and worker-3, each for both groups")

	if err := r.await(ctx, 15); err != nil {
		return err
	}
	r.doomed.kill()
	r.progress.Say("killed %s in mid-handler; its %d messages wait for their leases to run out", doomedName, r.doomed.held)

	if err := r.await(ctx, 30); err != nil {
		return err
	}
	drained := make(chan error, 1)
	go func() { drained <- r.drainFirst(ctx) }()
	if err := errors.Join(r.await(ctx, 100), <-drained); err != nil {
		return err
	}
	if late := r.tally.wait(r.ledger.delayedID, r.ledger.delayedAt); late > 0 {
		r.progress.Say("the message delayed by %s came after %s", delay, late.Round(10*time.Millisecond))
	}
	if err := stopAll(ctx, r.workers); err != nil {
		return err
	}
	r.progress.Say("drained the other workers")
	return nil
}

// drainFirst stops one worker while the others go on.
func (r *run) drainFirst(ctx context.Context) error {
	before := r.tally.releases()
	if err := r.workers[0].stop(ctx); err != nil {
		return err
	}
	r.progress.Say("drained %s in mid-run: it finished what it was at, and gave back %d messages that it had read ahead",
		r.workers[0].name, r.tally.releases()-before)
	return nil
}

// close ends whatever still runs and removes the keys, also when the demonstration was broken off.
func (r *run) close() error {
	if r.doomed != nil {
		r.doomed.kill()
	}
	ctx, cancel := context.WithTimeout(context.Background(), drainTime+cleanupTime)
	defer cancel()
	// Where a worker still runs, something went wrong before: its troubles are consequences.
	_ = stopAll(ctx, r.workers)
	err := r.publisher.Close()
	if cleanErr := removeKeys(ctx, r.redis, r.prefix); cleanErr != nil {
		err = errors.Join(err, fmt.Errorf("remove the keys: %w", cleanErr))
		r.progress.Say("remove the keys under %q by hand", r.prefix)
	} else {
		r.progress.Say("removed all keys under %q", r.prefix)
	}
	r.redis.Close()
	return err
}
