// Package worker is a worker process of a load test: it consumes with the library and writes to the journal what its
// handlers do.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/journal"
	"github.com/xstreamq/xstreamq/loadtest/internal/message"
)

// Options are for one process. Zero values of those that have a default in the library mean that default.
type Options struct {
	// URL of the server.
	URL string
	// KeyPrefix and Queue name the stream.
	KeyPrefix, Queue string
	// Groups is how many groups this process works for, each with handlers of its own.
	Groups int
	// Concurrency, Prefetch, Visibility, MaxLostLeases and Dedupe are those of the library.
	Concurrency, Prefetch int
	Visibility            time.Duration
	MaxLostLeases         int
	Dedupe                time.Duration
	// Backoff is the first wait of a retry. It doubles, up to ten times this.
	Backoff time.Duration
	// CompactEvery is how often finished entries are trimmed.
	CompactEvery time.Duration
	// Handler is how long a handler takes.
	Handler time.Duration
	// Plan says which handlers fail, and after how many failures a message is dead.
	Plan message.Plan
	// Journal is a directory.
	Journal string
	// Run is the number of this process.
	Run int
}

// openWait is the time between two attempts to reach a server that is down.
const openWait = 50 * time.Millisecond

// Run consumes until ctx ends, then drains. A server that is down is waited for.
func Run(ctx context.Context, o Options, log io.Writer) (err error) {
	notes, err := journal.Create(o.Journal, o.Run)
	if err != nil {
		return err
	}
	defer notes.Close()
	ctx, unable := context.WithCancelCause(ctx)
	beating, still := context.WithCancel(context.Background())
	beats := make(chan error, 1)
	go func() {
		err := beat(beating, o.Run, notes)
		if err != nil {
			unable(err) // a worker whose journal cannot be written proves nothing
		}
		beats <- err
	}()
	defer func() {
		still()
		err = errors.Join(err, <-beats)
		unable(nil)
	}()
	client, err := open(ctx, o, log)
	if err != nil || client == nil {
		return err
	}
	queue, err := xstreamq.NewQueue(client, o.Queue, xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	if err != nil {
		return errors.Join(err, client.Close())
	}
	for group := range max(o.Groups, 1) {
		h := handler{opts: &o, group: group, notes: notes}
		if _, err := queue.Subscribe(message.Group(group), h.handle, o.subscribe()); err != nil {
			return errors.Join(err, client.Close())
		}
	}
	for {
		err := client.Start(ctx)
		if err == nil {
			break
		}
		if ctx.Err() != nil || !sleep(ctx, openWait) {
			return client.Close()
		}
	}
	<-ctx.Done()
	return client.Close()
}

// beat notes until ctx ends that this process is given time: what is written late for want of it is nobody's fault.
func beat(ctx context.Context, run int, notes *journal.Writer) error {
	for {
		if err := notes.Write(&journal.Record{Kind: journal.Beat, Run: uint32(run), At: time.Now().UnixNano()}); err != nil {
			return err
		}
		if !sleep(ctx, journal.BeatEvery) {
			return nil
		}
	}
}

// open returns nil and no error when ctx ended first. A mistake in the options is not waited for.
func open(ctx context.Context, o Options, log io.Writer) (*xstreamq.Client, error) {
	cfg := xstreamq.Config{
		KeyPrefix: o.KeyPrefix, CompactEvery: o.CompactEvery,
		Logger: slog.New(slog.NewTextHandler(log, nil)).With("run", o.Run),
	}
	for {
		client, err := xstreamq.Open(o.URL, cfg)
		if err == nil || errors.Is(err, xstreamq.ErrInvalidConfig) {
			return client, err
		}
		if !sleep(ctx, openWait) {
			return nil, nil
		}
	}
}

func (o *Options) subscribe() xstreamq.SubscribeOptions {
	retries := o.Plan.MaxRetries
	if retries == 0 {
		retries = xstreamq.NoRetries
	}
	return xstreamq.SubscribeOptions{
		Concurrency: o.Concurrency, Prefetch: o.Prefetch, VisibilityTimeout: o.Visibility, MaxRetries: retries,
		MaxLostLeases: o.MaxLostLeases, Dedupe: o.Dedupe, Backoff: xstreamq.Backoff{Initial: o.Backoff, Max: 10 * o.Backoff},
	}
}

// handler is that of one group.
type handler struct {
	opts  *Options
	group int
	notes *journal.Writer
}

var errPlanned = errors.New(message.Failure)

func (h *handler) handle(ctx context.Context, m *xstreamq.Message[[]byte]) error {
	seq, sent, ok := message.ParseBody(m.Body)
	entry, okEntry := journal.ParseID(m.ID)
	original, okOriginal := journal.ParseID(m.OriginalID)
	if !ok || !okEntry || !okOriginal {
		return fmt.Errorf("message %s is not one of this test", m.OriginalID)
	}
	r := journal.Record{
		Seq: seq, Kind: journal.Start, Group: uint8(h.group), Run: uint32(h.opts.Run), Entry: entry, Original: original,
		Failures: clip(m.Retries), Lost: clip(m.LostLeases), At: time.Now().UnixNano(), Sent: sent.UnixNano(),
	}
	if err := h.notes.Write(&r); err != nil {
		return xstreamq.Release(err)
	}
	if !sleep(ctx, h.opts.Handler) {
		r.Kind, r.At = journal.GivenUp, time.Now().UnixNano()
		return xstreamq.Release(errors.Join(context.Cause(ctx), h.notes.Write(&r))) // not what the plan calls a failure
	}
	r.Kind = journal.OK
	if h.opts.Plan.Fails(h.group, seq, m.Retries) {
		r.Kind = journal.Failed
	}
	r.At = time.Now().UnixNano()
	if err := h.notes.Write(&r); err != nil {
		return xstreamq.Release(err)
	}
	if r.Kind == journal.Failed {
		return errPlanned
	}
	return nil
}

func clip(n int) uint16 { return uint16(min(n, 1<<16-1)) }

// sleep returns false when ctx ends first. No time at all is not waited for.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
