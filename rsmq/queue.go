package rsmq

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/jsnumber"
)

// QueueOptions are the attributes of a new queue.
type QueueOptions struct {
	// VisibilityTimeout is how long a received message is hidden, in whole seconds. nil: 30s. 0 hides it not at all.
	VisibilityTimeout *time.Duration
	// Delay is how long a sent message waits, in whole seconds. nil: 0.
	Delay *time.Duration
	// MaxSize is the largest body in UTF-16 code units, 1,024 to 65,536, or Unlimited. nil: 65,536.
	MaxSize *int
}

// CreateQueue makes a queue. ErrQueueExists if there is one, whose attributes then stay.
func (c *Client) CreateQueue(ctx context.Context, queue string, o QueueOptions) error {
	if err := firstOf(checkQueue(queue), checkWhole("vt", o.VisibilityTimeout), checkWhole("delay", o.Delay), checkSize(o.MaxSize)); err != nil {
		return err
	}
	args := createArgs{Clock: c.pinned(), Name: queue, Vt: 30, Delay: 0, Size: maxSize}
	if o.VisibilityTimeout != nil {
		args.Vt = seconds(*o.VisibilityTimeout)
	}
	if o.Delay != nil {
		args.Delay = seconds(*o.Delay)
	}
	if o.MaxSize != nil {
		args.Size = int64(*o.MaxSize)
	}
	status, err := call(ctx, c, func(ctx context.Context) (int64, error) {
		return runCreate(ctx, c.redis, c.keys(queue), args).AsInt64()
	})
	if err != nil {
		return failed("create", queue, err, true)
	}
	if status == createExists {
		return ErrQueueExists
	}
	return nil
}

// ListQueues returns the names of all queues, in no order.
func (c *Client) ListQueues(ctx context.Context) ([]string, error) {
	names, err := call(ctx, c, func(ctx context.Context) ([]string, error) {
		return c.redis.Do(ctx, c.redis.B().Smembers().Key(c.keys("").Queues).Build()).AsStrSlice()
	})
	return names, failed("list queues", "", err, false)
}

// DeleteQueue deletes a queue with all its messages. ErrQueueNotFound if there was nothing of it.
func (c *Client) DeleteQueue(ctx context.Context, queue string) error {
	if err := checkQueue(queue); err != nil {
		return err
	}
	found, err := call(ctx, c, func(ctx context.Context) (int64, error) {
		return runDrop(ctx, c.redis, c.keys(queue), dropArgs{Name: queue}).AsInt64()
	})
	if err != nil {
		return failed("delete queue", queue, err, true)
	}
	if found == 0 {
		return ErrQueueNotFound
	}
	return nil
}

// Attributes is what is known of a queue.
type Attributes struct {
	VisibilityTimeout time.Duration
	Delay             time.Duration
	MaxSize           int // in UTF-16 code units; Unlimited
	// Received counts deliveries, Sent messages.
	Received, Sent int64
	Created        time.Time // to the second
	Modified       time.Time // likewise
	// Messages is how many there are, hidden ones too.
	Messages int64
	// Hidden is how many are hidden, counted as the Node package does: from the beginning of the current second, so up to a second's worth
	// of visible ones is in it. Visible is exact.
	Hidden, Visible int64
	// Missing names the attributes, as the Node package does (vt, delay, maxsize, totalrecv, totalsent, created, modified), that are no
	// numbers, or that the queue lacks; a queue that never sent or delivered lacks no counter. Their fields above are zero.
	Missing []string
}

// GetQueueAttributes returns what is known of a queue.
func (c *Client) GetQueueAttributes(ctx context.Context, queue string) (Attributes, error) {
	if err := checkQueue(queue); err != nil {
		return Attributes{}, err
	}
	reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runAttributes(ctx, c.redis, c.keys(queue), attributesArgs{Clock: c.pinned()}).ToArray()
	})
	if err != nil {
		return Attributes{}, failed("attributes of", queue, err, false)
	}
	return readAttributes(reply)
}

// QueueChanges are the attributes to set; nil leaves one as it is.
type QueueChanges struct {
	VisibilityTimeout, Delay *time.Duration // whole seconds
	MaxSize                  *int
}

// SetQueueAttributes changes attributes of a queue, and returns all of them. Messages that are there stay as they are.
func (c *Client) SetQueueAttributes(ctx context.Context, queue string, ch QueueChanges) (Attributes, error) {
	if ch == (QueueChanges{}) {
		return Attributes{}, ErrNoAttributeSupplied
	}
	err := firstOf(checkQueue(queue), checkWhole("vt", ch.VisibilityTimeout), checkSize(ch.MaxSize), checkWhole("delay", ch.Delay))
	if err != nil {
		return Attributes{}, err
	}
	var changes []string
	if ch.VisibilityTimeout != nil {
		changes = append(changes, "vt", decimal(seconds(*ch.VisibilityTimeout)))
	}
	if ch.MaxSize != nil {
		changes = append(changes, "maxsize", strconv.Itoa(*ch.MaxSize))
	}
	if ch.Delay != nil {
		changes = append(changes, "delay", decimal(seconds(*ch.Delay)))
	}
	reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runConfigure(ctx, c.redis, c.keys(queue), configureArgs{Clock: c.pinned(), Changes: changes}).ToArray()
	})
	if err != nil {
		return Attributes{}, failed("set attributes of", queue, err, true)
	}
	return readAttributes(reply)
}

// readAttributes reads the answer of the attributes script. Stored numbers are read as the Node package reads them.
func readAttributes(reply []rueidis.RedisMessage) (Attributes, error) {
	const stored, all = 7, 10
	if len(reply) == 0 {
		return Attributes{}, ErrQueueNotFound
	}
	if len(reply) != all {
		return Attributes{}, &shortReply{"attributes", len(reply)}
	}
	var a Attributes
	number := func(i int, name string) (n int64, ok bool) {
		text, err := reply[i].ToString()
		n, ok = jsnumber.Parse(text)
		if ok = ok && err == nil; !ok {
			a.Missing = append(a.Missing, name)
		}
		return n, ok
	}
	duration := func(i int, name string) time.Duration {
		n, _ := number(i, name)
		return ofSeconds(n)
	}
	count := func(i int, name string) int64 {
		if reply[i].IsNil() {
			return 0
		}
		n, _ := number(i, name)
		return n
	}
	moment := func(i int, name string) time.Time {
		if n, ok := number(i, name); ok {
			return time.Unix(n, 0)
		}
		return time.Time{}
	}
	a.VisibilityTimeout, a.Delay = duration(0, "vt"), duration(1, "delay")
	size, _ := number(2, "maxsize")
	a.MaxSize = int(size)
	a.Received, a.Sent = count(3, "totalrecv"), count(4, "totalsent")
	a.Created, a.Modified = moment(5, "created"), moment(6, "modified")
	var counts [all - stored]int64
	for i := range counts {
		n, err := reply[stored+i].AsInt64()
		if err != nil {
			return Attributes{}, err
		}
		counts[i] = n
	}
	a.Messages, a.Hidden, a.Visible = counts[0], counts[1], counts[2]
	return a, nil
}

// firstOf returns the first error: their order is part of the contract.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
