package xstreamq

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Limits of a message besides Config.MaxBodySize.
const (
	maxHeaders    = 1000
	maxHeaderSize = 64 << 10 // names and values together
)

// Queue is a queue of bodies of type T. Safe for concurrent use.
type Queue[T any] struct {
	client *Client
	name   string
	keys   keys.Set
	codec  Codec[T]

	validates bool // T has, or may have, a Validate
}

// QueueOption is an option of NewQueue.
type QueueOption[T any] func(*Queue[T])

// WithCodec sets how bodies are encoded. Default JSON.
func WithCodec[T any](c Codec[T]) QueueOption[T] {
	return func(q *Queue[T]) { q.codec = c }
}

// NewQueue returns a queue by name: 1-160 characters of A-Z a-z 0-9 _ . : @ -, else ErrInvalidName. It talks to nobody.
func NewQueue[T any](c *Client, name string, opts ...QueueOption[T]) (*Queue[T], error) {
	if c == nil {
		return nil, fmt.Errorf("%w: NewQueue needs a client", ErrInvalidConfig)
	}
	if err := checkName("queue", name); err != nil {
		return nil, err
	}
	q := &Queue[T]{client: c, name: name, keys: keys.ForQueue(c.cfg.KeyPrefix, name), codec: JSON[T]{}, validates: mayValidate[T]()}
	for _, o := range opts {
		if o != nil {
			o(q)
		}
	}
	if q.codec == nil {
		return nil, fmt.Errorf("%w: the codec of queue %q is nil", ErrInvalidConfig, name)
	}
	return q, nil
}

// Name returns the queue's name.
func (q *Queue[T]) Name() string { return q.name }

// outgoing is a message on its way to Redis.
type outgoing struct {
	body   []byte
	header []string // name, value, name, value
	in     time.Duration
	at     time.Time
	err    error
}

func (m *outgoing) delayed() bool { return m.in > 0 || !m.at.IsZero() }

// PublishOption is an option of one message.
type PublishOption func(*outgoing)

// WithHeader adds an application header. Names are free, values are bytes; "traceparent" carries a trace. At most 1,000
// headers of 64 KiB in all; the same name twice is an error.
func WithHeader(name, value string) PublishOption {
	return func(m *outgoing) {
		for i := 0; i < len(m.header); i += 2 {
			if m.header[i] == name {
				m.err = fmt.Errorf("%w: header %q is set twice", ErrInvalidMessage, name)
			}
		}
		m.header = append(m.header, name, value)
	}
}

// WithDelay delivers the message d after Redis stored it, give or take half a second. Zero or less means at once. The
// message needs a running subscriber of the queue to become due.
func WithDelay(d time.Duration) PublishOption {
	return func(m *outgoing) { m.in, m.at = min(d, maxDelay), time.Time{} }
}

// WithDeliverAt is WithDelay for a point in time, by the clock of Redis. The past means as soon as possible; a year after
// 9999 is an error.
func WithDeliverAt(t time.Time) PublishOption {
	return func(m *outgoing) {
		m.in, m.at = 0, t
		if t.Year() > 9999 {
			m.err = fmt.Errorf("%w: it would be delivered in the year %d", ErrInvalidMessage, t.Year())
		}
	}
}

// Publish stores one message and returns its id. nil means that Redis has it, and every group that exists will get it. An
// error that is ErrPublishUncertain says that it may have been stored all the same; any other, that it surely was not.
// Nothing is sent twice. A context without a deadline is given 5s.
func (q *Queue[T]) Publish(ctx context.Context, body T, opts ...PublishOption) (string, error) {
	m, err := q.prepare(body, opts)
	if err == nil {
		id, sendErr := q.send(ctx, m)
		q.client.observePublished(q.name, stored(sendErr), sendErr)
		return id, sendErr
	}
	q.client.observePublished(q.name, 0, err)
	return "", err
}

func stored(err error) int {
	if err != nil {
		return 0
	}
	return 1
}

// prepare encodes and checks a message before anything is sent.
func (q *Queue[T]) prepare(body T, opts []PublishOption) (outgoing, error) {
	m := withOptions(opts)
	if m.err != nil {
		return m, fmt.Errorf("publish to %q: %w", q.name, m.err)
	}
	var err error
	if m.body, err = q.encode(body); err != nil {
		return m, fmt.Errorf("publish to %q: %w", q.name, err)
	}
	return m, m.check(q.name, q.client.cfg.MaxBodySize)
}

// withOptions keeps a message without options off the heap.
func withOptions(opts []PublishOption) outgoing {
	if len(opts) == 0 {
		return outgoing{}
	}
	m := new(outgoing)
	for _, o := range opts {
		if o != nil {
			o(m)
		}
	}
	return *m
}

func (m *outgoing) check(queue string, maxBody int) error {
	if len(m.body) > maxBody {
		return fmt.Errorf("publish to %q: %w: the body has %d bytes, MaxBodySize is %d", queue, ErrTooLarge, len(m.body), maxBody)
	}
	size := 0
	for _, s := range m.header {
		size += len(s)
	}
	if len(m.header) > 2*maxHeaders || size > maxHeaderSize {
		return fmt.Errorf("publish to %q: %w: %d headers of %d bytes; at most %d of %d",
			queue, ErrTooLarge, len(m.header)/2, size, maxHeaders, maxHeaderSize)
	}
	return nil
}

func (q *Queue[T]) send(ctx context.Context, m outgoing) (string, error) {
	if err := q.client.unsendable(ctx); err != nil {
		return "", publishError(q.name, err, false)
	}
	ctx, cancel := q.client.bound.of(ctx)
	defer cancel()
	if m.delayed() {
		ids, err := q.schedule(ctx, []outgoing{m})
		if err != nil {
			return "", err
		}
		return ids[0], nil
	}
	id, err := q.client.redis.Do(ctx, q.add(m)).ToString()
	if err != nil {
		q.client.heed(err)
		return "", publishError(q.name, err, true)
	}
	return id, nil
}

// unsendable is why nothing can be sent any more, or nil. What fails later may have been stored.
func (c *Client) unsendable(ctx context.Context) error {
	if c.closed.Load() {
		return ErrStopped
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// add is the command that stores a message for delivery at once.
func (q *Queue[T]) add(m outgoing) rueidis.Completed {
	fv := q.client.redis.B().Xadd().Key(q.keys.Queue).Id("*").FieldValue().
		FieldValue(wire.Body, rueidis.BinaryString(m.body))
	for i := 0; i < len(m.header); i += 2 {
		fv = fv.FieldValue(wire.Header+m.header[i], m.header[i+1])
	}
	return fv.Build()
}

func millis(d time.Duration) string { return strconv.FormatInt(ceilMillis(d), 10) }

// ceilMillis rounds up, so that no wait is shorter than asked.
func ceilMillis(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}
