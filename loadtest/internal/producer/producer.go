// Package producer publishes by docs/contract.md alone: XADD from plain connections. It knows neither the library nor its
// Redis client, so that a mistake there cannot agree with itself here.
package producer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/message"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// Options say what is published, and where.
type Options struct {
	// Server is where to publish.
	Server resp.Options
	// KeyPrefix and Queue name the stream.
	KeyPrefix, Queue string
	// Messages are published, each once. Their numbers count from 0.
	Messages int
	// Rate is how many are due per second, from the moment of Run; what the server cannot take then comes later, all at once.
	// 0: as fast as possible.
	Rate float64
	// Body is the size of a body in bytes, at least message.MinBody.
	Body int
	// Connections publish side by side. Default 4.
	Connections int
	// AckFile is where the outcome of each publish is noted; see [ReadAcks].
	AckFile string
	// Published, if set, is told of each acknowledged publish: how long ago it was due. It is called from many goroutines.
	Published func(after time.Duration)
}

// MaxBatch is how many publishes share a round trip at most.
const MaxBatch = 100

const (
	defaultConnections = 4
	// Waits between two attempts to connect.
	firstWait, longestWait = 20 * time.Millisecond, 250 * time.Millisecond
)

// Counts are what became of the publishes so far.
type Counts struct{ Acknowledged, Refused, Unknown int64 }

// All is how many were tried.
func (c Counts) All() int64 { return c.Acknowledged + c.Refused + c.Unknown }

// Producer publishes numbered messages. It repeats none: what was cut off between request and reply stays unknown.
type Producer struct {
	opts   Options
	stream []byte
	pace   *pacer
	acks   *ackFile

	acknowledged, refused, unknown atomic.Int64
}

// New makes a producer and its file of outcomes.
func New(opts Options) (*Producer, error) {
	if opts.Body < message.MinBody {
		return nil, fmt.Errorf("a body has at least %d bytes, not %d", message.MinBody, opts.Body)
	}
	if opts.Messages < 0 || opts.Rate < 0 {
		return nil, errors.New("neither the number of messages nor their rate can be negative")
	}
	if opts.Connections <= 0 {
		opts.Connections = defaultConnections
	}
	acks, err := createAcks(opts.AckFile)
	if err != nil {
		return nil, err
	}
	return &Producer{opts: opts, stream: []byte(opts.KeyPrefix + "{" + opts.Queue + "}"), acks: acks}, nil
}

// Counts returns what became of the publishes so far.
func (p *Producer) Counts() Counts {
	return Counts{p.acknowledged.Load(), p.refused.Load(), p.unknown.Load()}
}

// Run publishes until every message has been tried, or ctx ends; then what is under way is finished first. An outage of the
// server is no error: it goes on when the server is back. Call it once.
func (p *Producer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p.pace = newPacer(p.opts.Messages, p.opts.Rate)
	var wg sync.WaitGroup
	for range p.opts.Connections {
		wg.Go(func() {
			w := publisher{p: p}
			if err := w.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, p.acks.close())
}

// publisher is one connection's loop.
type publisher struct {
	p       *Producer
	conn    *resp.Conn
	body    []byte
	due     [MaxBatch]time.Time
	outcome []byte
}

func (w *publisher) run(ctx context.Context) error {
	defer w.drop()
	for {
		if !w.connect(ctx) {
			return nil
		}
		first, n := w.p.pace.take(ctx, w.due[:])
		if n == 0 {
			return nil
		}
		if err := w.publish(ctx, first, n); err != nil {
			return err
		}
	}
}

// connect sees to it that there is a connection to a server that takes commands. It returns false when ctx ends.
func (w *publisher) connect(ctx context.Context) bool {
	for wait := firstWait; w.conn == nil; wait = min(2*wait, longestWait) {
		conn, err := resp.Dial(ctx, w.p.opts.Server)
		if err == nil {
			if _, err = conn.Do("PING"); err == nil {
				w.conn = conn
				break
			}
			_ = conn.Close() // it loads its data, or is about to end
		}
		if !sleep(ctx, wait) {
			return false
		}
	}
	return ctx.Err() == nil
}

func (w *publisher) drop() {
	if w.conn != nil {
		_ = w.conn.Close() // nothing is under way on it
		w.conn = nil
	}
}

// publish sends n messages in one go and notes what becomes of each. An error means that the outcomes cannot be kept.
func (w *publisher) publish(ctx context.Context, first, n int) error {
	for i := range n {
		w.body = message.AppendBody(w.body[:0], first+i, w.due[i], w.p.opts.Body)
		w.conn.Append(xadd, w.p.stream, anyID, bodyField, w.body)
	}
	w.outcome = w.outcome[:0]
	err := w.conn.Flush()
	refused := false
	for i := range n {
		var v resp.Value
		if err == nil {
			v, err = w.conn.Receive()
		}
		ack := Ack{Seq: first + i, Status: Unknown}
		if err == nil {
			ack, err = outcomeOf(first+i, v)
		}
		refused = refused || ack.Status == Refused
		w.count(ack.Status, w.due[i])
		w.outcome = ack.append(w.outcome)
	}
	if err != nil || refused {
		w.drop()
	}
	if refused {
		sleep(ctx, longestWait) // a server that is full, or about to end, is not asked at full speed
	}
	return w.p.acks.write(w.outcome)
}

var xadd, anyID, bodyField = []byte("XADD"), []byte("*"), []byte("body")

func (w *publisher) count(s Status, due time.Time) {
	switch s {
	case Acknowledged:
		w.p.acknowledged.Add(1)
		if tell := w.p.opts.Published; tell != nil {
			tell(time.Since(due))
		}
	case Refused:
		w.p.refused.Add(1)
	case Unknown:
		w.p.unknown.Add(1)
	}
}

// outcomeOf reads the reply to a publish. One that is neither an id nor an error ends the connection.
func outcomeOf(seq int, v resp.Value) (Ack, error) {
	if v.Kind == resp.Failure {
		return Ack{Seq: seq, Status: Refused}, nil
	}
	ms, n, ok := parseID(v.Text)
	if v.Kind != resp.Bulk || !ok {
		return Ack{Seq: seq, Status: Unknown}, fmt.Errorf("%w: XADD returned %q", resp.ErrProtocol, v.Text)
	}
	return Ack{Seq: seq, Status: Acknowledged, Ms: ms, N: n}, nil
}

// sleep returns false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
