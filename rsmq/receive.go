package rsmq

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/jsnumber"
	"github.com/xstreamq/xstreamq/internal/redisconn"
)

// Message is a delivered message.
type Message struct {
	ID string
	// Body is the text that was sent. Another program may have stored bytes that are no valid UTF-8; they are left as they are.
	Body string
	// NoBody: the message lost its body, or never had one. It counts as delivered.
	NoBody bool
	// ReceiveCount is how often it was received, this time included.
	ReceiveCount int64
	// FirstReceived is when it was first received, to the millisecond; zero when that is not known.
	FirstReceived time.Time
	// Sent is when it was sent, to the microsecond, as its id says; zero for an id that does not say.
	Sent time.Time
}

// ReceiveOptions are for one receive.
type ReceiveOptions struct {
	// VisibilityTimeout is how long the message is hidden, to the millisecond. nil: as the queue says. 0 hides it not at all.
	VisibilityTimeout *time.Duration
	// Wait is how long to wait for a message when none is visible. 0: not at all. Negative is ErrInvalidValue.
	Wait time.Duration
}

const (
	receiveMost  = 1000    // messages that one call may ask for
	deliverBytes = 1 << 20 // of bodies in one answer, as the scripts have it
	longNext     = 1 << 40 // ms; other programs may store any time
)

// ReceiveMessage delivers the next visible message and hides it. ok is false when there is none.
func (c *Client) ReceiveMessage(ctx context.Context, queue string, o ReceiveOptions) (m Message, ok bool, err error) {
	if err := firstOf(checkQueue(queue), checkWait(o.Wait)); err != nil {
		return Message{}, false, err
	}
	from := queueTime{queue, span(o.VisibilityTimeout)}
	ms, err := poll(ctx, o.Wait, func() ([]Message, time.Duration, error) {
		d, err := share(ctx, c, &c.receives, from, struct{}{})
		return d.ms, d.next, err
	})
	return only(ms, failed("receive from", queue, err, true))
}

// ReceiveMessages delivers up to most visible messages, 1 to 1,000, in one step; fewer when they come to more than 1 MiB. It returns none when
// none is visible, which is no error; with Wait it returns as soon as there is one.
func (c *Client) ReceiveMessages(ctx context.Context, queue string, most int, o ReceiveOptions) ([]Message, error) {
	if err := firstOf(checkQueue(queue), checkMost(most), checkWait(o.Wait)); err != nil {
		return nil, err
	}
	ms, err := poll(ctx, o.Wait, func() ([]Message, time.Duration, error) {
		return c.receiveFor(ctx, queueTime{queue, span(o.VisibilityTimeout)}, most)
	})
	return ms, failed("receive from", queue, err, true)
}

// PopMessage delivers the next visible message and deletes it: if this process dies now, or ctx ends while Redis answers, the message is gone. ok
// is false when there is none.
func (c *Client) PopMessage(ctx context.Context, queue string) (m Message, ok bool, err error) {
	if err := checkQueue(queue); err != nil {
		return Message{}, false, err
	}
	d, err := share(ctx, c, &c.pops, queueTime{queue: queue}, struct{}{})
	return only(d.ms, failed("pop from", queue, err, true))
}

// PopMessages is PopMessage for up to most messages, 1 to 1,000, in one step; fewer when they come to more than 1 MiB.
func (c *Client) PopMessages(ctx context.Context, queue string, most int) ([]Message, error) {
	if err := firstOf(checkQueue(queue), checkMost(most)); err != nil {
		return nil, err
	}
	ms, _, err := c.pop(ctx, queueTime{queue: queue}, most)
	return ms, failed("pop from", queue, err, true)
}

func only(ms []Message, err error) (Message, bool, error) {
	if err != nil || len(ms) == 0 {
		return Message{}, false, err
	}
	return ms[0], true, nil
}

func (c *Client) receive(ctx context.Context, from queueTime, most int) ([]Message, time.Duration, error) {
	args := receiveArgs{Clock: c.pinned(), Vt: from.ms, Count: int64(most)}
	reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runReceive(ctx, c.redis, c.keys(from.queue), args).ToArray()
	})
	return readMessages("receive", reply, err)
}

func (c *Client) pop(ctx context.Context, from queueTime, most int) ([]Message, time.Duration, error) {
	args := popArgs{Clock: c.pinned(), Count: int64(most)}
	reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runPop(ctx, c.redis, c.keys(from.queue), args).ToArray()
	})
	return readMessages("pop", reply, err)
}

// delivery is what was received, and how long it is until one is visible (negative: not known).
type delivery struct {
	ms   []Message
	next time.Duration
}

// serveDeliveries takes a message for each of several callers.
func serveDeliveries(
	ctx context.Context, from queueTime, callers int, take func(ctx context.Context, from queueTime, most int) ([]Message, time.Duration, error),
) []outcome[delivery] {
	out := make([]outcome[delivery], 0, callers)
	for len(out) < callers {
		ms, next, err := take(ctx, from, callers-len(out))
		size := 0
		for i := range ms {
			out = append(out, outcome[delivery]{value: delivery{ms: ms[i : i+1]}})
			size += len(ms[i].Body)
		}
		if err != nil || size < deliverBytes { // else there may be more
			out = append(out, slices.Repeat([]outcome[delivery]{{delivery{next: next}, err}}, callers-len(out))...)
		}
	}
	return out
}

// receiveFor is receive for a caller who may leave before the answer comes: its messages are given back then.
func (c *Client) receiveFor(ctx context.Context, from queueTime, most int) ([]Message, time.Duration, error) {
	if err := c.unsendable(ctx); err != nil {
		return nil, 0, err
	}
	type reply = outcome[delivery]
	waiting, leave := redisconn.Bound(ctx, commandTimeout)
	defer leave()
	answered := make(chan reply) // takes an answer as long as the caller waits
	until, _ := waiting.Deadline()
	go func() {
		late, cancel := context.WithDeadline(context.WithoutCancel(ctx), later(until, time.Now().Add(commandTimeout)))
		defer cancel()
		ms, next, err := c.receive(late, from, most)
		select {
		case answered <- reply{delivery{ms, next}, err}:
		case <-waiting.Done():
			c.giveBack(from, delivery{ms: ms})
		}
	}()
	select {
	case a := <-answered:
		return a.value.ms, a.value.next, a.err
	case <-waiting.Done():
		return nil, 0, context.Cause(waiting)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// giveBack makes messages visible whose caller has gone. Those that it cannot are visible when their time is over.
func (c *Client) giveBack(from queueTime, d delivery) {
	ctx, cancel := context.WithTimeout(context.Background(), commandTimeout)
	defer cancel()
	for _, m := range d.ms {
		if _, err := c.hide(ctx, from.queue, m.ID, 0); err != nil {
			return
		}
	}
}

func checkWait(d time.Duration) error {
	if d < 0 {
		return &Error{ErrInvalidValue.Name, "the wait must not be negative"}
	}
	return nil
}

func checkMost(n int) error {
	if n < 1 || n > receiveMost {
		return &Error{ErrInvalidValue.Name, "the number of messages must be between 1 and " + strconv.Itoa(receiveMost)}
	}
	return nil
}

// readMessages reads the answer of the receive and pop scripts, and how long it is until a message is visible (negative: not known).
func readMessages(script string, reply []rueidis.RedisMessage, err error) ([]Message, time.Duration, error) {
	const head, each = 2, 4
	if err != nil {
		return nil, 0, err
	}
	if len(reply) < head || (len(reply)-head)%each != 0 {
		return nil, 0, &replyError{script, len(reply)}
	}
	if err := statusError(reply[0], "vt"); err != nil {
		return nil, 0, err
	}
	next, err := reply[1].AsInt64()
	if err != nil {
		return nil, 0, err
	}
	var ms []Message
	for at := head; at < len(reply); at += each {
		m, err := readMessage(reply[at : at+each])
		if err != nil {
			return nil, 0, err
		}
		ms = append(ms, m)
	}
	return ms, time.Duration(min(next, longNext)) * time.Millisecond, nil
}

func readMessage(item []rueidis.RedisMessage) (m Message, err error) {
	if m.ID, err = item[0].ToString(); err != nil {
		return m, err
	}
	if m.NoBody = item[1].IsNil(); !m.NoBody {
		if m.Body, err = item[1].ToString(); err != nil {
			return m, err
		}
	}
	if m.ReceiveCount, err = item[2].AsInt64(); err != nil {
		return m, err
	}
	first, err := item[3].ToString()
	if err != nil {
		return m, err
	}
	if ms, ok := jsnumber.Parse(first); ok && ms != 0 {
		m.FirstReceived = time.UnixMilli(ms)
	}
	m.Sent = sentAt(m.ID)
	return m, nil
}

// sentAt is the time that an id begins with. An id of another program is read as the Node package reads it: as far as it goes.
func sentAt(id string) time.Time {
	head := id[:min(len(id), timeLength)]
	end := 0
	for end < len(head) && alphanumeric(head[end]) {
		end++
	}
	us, err := strconv.ParseInt(head[:end], 36, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(us)
}
