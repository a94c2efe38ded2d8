package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/producer"
	"github.com/xstreamq/xstreamq/loadtest/internal/report"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/supervisor"
)

const (
	// look is how often journals are read and the backlog is noted.
	look = 50 * time.Millisecond
	// endless is more messages than any phase publishes; its time ends it.
	endless = math.MaxInt32
	// warmRate and warmBatch wake the workers before a phase is measured.
	warmRate, warmBatch = 2000, 100
	// catchUp is how long workers may take to become ready, or to handle what a phase left behind.
	catchUp = 2 * time.Minute
	// patience is how long workers may take to end.
	patience = 20 * time.Second
)

// phase is one measurement, with a queue, workers and files of its own.
type phase struct {
	rig   *Rig
	queue string
	dir   string
	lists int

	workers  *supervisor.Workers // nil where there are none
	follower *journal.Follower
	seen     records
}

// phase begins one.
func (r *Rig) phase(title string) (*phase, error) {
	number := r.begin(title)
	p := &phase{rig: r, queue: fmt.Sprintf("load-%d-%d", os.Getpid(), number), seen: newRecords()}
	p.dir = filepath.Join(r.opts.Dir, p.queue)
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for the journals: %w", err)
	}
	p.follower = journal.Follow(p.dir)
	p.follower.Each = p.seen.add
	return p, nil
}

// end stops the workers and removes the queue and the files.
func (p *phase) end(ctx context.Context) error {
	err := p.stopWorkers()
	c, dialErr := resp.Dial(context.WithoutCancel(ctx), p.rig.opts.Server)
	if dialErr != nil {
		return errors.Join(err, fmt.Errorf("remove the queue of a phase: %w", dialErr))
	}
	defer c.Close()
	stream, name := "{"+p.queue+"}", message.Group(0)
	group := stream + "." + name
	_, unlinkErr := c.Do("UNLINK", stream, group+".retry", group+".dlq", group+".delayed",
		stream+":lock:reclaim:"+name, stream+":lock:reclaim-retry:"+name)
	if unlinkErr != nil {
		unlinkErr = fmt.Errorf("remove the queue of a phase: %w", unlinkErr)
	}
	_, registryErr := c.Do("HDEL", "xstreamq:registry", p.queue+"/"+name)
	return errors.Join(err, unlinkErr, registryErr, os.RemoveAll(p.dir))
}

func (p *phase) startWorkers(n int) error {
	o := p.rig.opts.Worker
	o.Queue, o.Groups, o.Journal = p.queue, 1, p.dir
	workers, err := supervisor.StartWorkers(supervisor.Options{
		Command: p.rig.opts.Command, Env: p.rig.opts.Env, Workers: n, Worker: o,
		Log: p.rig.log(),
	})
	if err != nil {
		return err
	}
	p.workers = workers
	p.rig.hire(workers)
	return nil
}

func (p *phase) stopWorkers() error {
	if p.workers == nil {
		return nil
	}
	p.rig.hire(nil)
	err := p.workers.Stop(patience)
	p.workers = nil
	return err
}

// running is a producer at work.
type running struct {
	*producer.Producer
	list   string
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}
	// took and err are set when done is closed.
	took time.Duration
	err  error
}

// start lets a producer publish for a time, or until it has published so many messages. Messages count from here.
func (p *phase) start(ctx context.Context, messages int, rate float64, connections int, limit time.Duration) (*running, error) {
	p.lists++
	list := filepath.Join(p.dir, fmt.Sprintf("outcomes-%d", p.lists))
	made, err := producer.New(producer.Options{
		Server: p.rig.opts.Server, Queue: p.queue, Messages: messages, Rate: rate, Body: p.rig.opts.Body,
		Connections: connections, AckFile: list,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	run := &running{Producer: made, list: list, began: time.Now(), cancel: cancel, done: make(chan struct{})}
	p.seen.from(run.began)
	go func() {
		defer close(run.done)
		defer cancel()
		run.err = made.Run(ctx)
		run.took = time.Since(run.began)
		if errors.Is(run.err, context.DeadlineExceeded) {
			run.err = nil // its time was up, as it should be
		}
	}()
	return run, nil
}

// wait polls until the producer has ended, and tells each the backlog. The producer has ended also with an error.
func (p *phase) wait(ctx context.Context, run *running, each func(at time.Duration, backlog int64)) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-run.done:
			return errors.Join(run.err, ctx.Err())
		case <-ticker.C:
		}
		at := time.Since(run.began)
		backlog, err := p.poll(run)
		if err != nil {
			run.cancel()
			<-run.done
			return err
		}
		each(at, backlog)
	}
}

// poll reads the journals, shows how far things are, and returns the backlog. A worker that ended by itself is an error.
func (p *phase) poll(run *running) (backlog int64, err error) {
	if p.workers != nil {
		if crashes := p.workers.Crashes(); len(crashes) > 0 {
			return 0, fmt.Errorf("%s%s", crashes[0], p.rig.logEnd())
		}
	}
	if _, err := p.follower.Poll(); err != nil {
		return 0, err
	}
	acked, handled := run.Counts().Acknowledged, int64(len(p.seen.ends))
	rate := p.seen.lately()
	p.rig.show(func(s *report.Progress) {
		s.Published, s.Handled, s.Backlog, s.Rate = acked, handled, acked-handled, rate
	})
	return acked - handled, nil
}

// finish waits until the workers have handled what the producer, which has ended, has published.
func (p *phase) finish(ctx context.Context, run *running) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUp, fmt.Errorf("the workers did not catch up within %v", catchUp))
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		backlog, err := p.poll(run)
		if err != nil || backlog <= 0 {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// warm publishes until each worker has handled something, so that none starts while things are measured.
func (p *phase) warm(ctx context.Context, workers int) error {
	for len(p.seen.began) < workers {
		run, err := p.start(ctx, warmBatch*workers, warmRate, 1, catchUp)
		if err != nil {
			return err
		}
		if err := errors.Join(p.wait(ctx, run, func(time.Duration, int64) {}), p.finish(ctx, run)); err != nil {
			return err
		}
	}
	return nil
}

// settle adds what became of a producer's messages to the tally.
func (p *phase) settle(run *running) error {
	c := run.Counts()
	t := Tally{Acknowledged: c.Acknowledged, Refused: c.Refused, Unknown: c.Unknown, Repeated: p.seen.repeated}
	err := producer.ReadAcks(run.list, func(a producer.Ack) {
		if a.Status == producer.Acknowledged && p.seen.handled(a.Seq) {
			t.Handled++
		}
	})
	if err != nil {
		return err
	}
	p.rig.add(t)
	return nil
}
