package rsmq

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/jsnumber"
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

// receiveMost is how many messages one call may ask for.
const receiveMost = 1000

// ReceiveMessage delivers the next visible message and hides it. ok is false when there is none.
func (c *Client) ReceiveMessage(ctx context.Context, queue string, o ReceiveOptions) (m Message, ok bool, err error) {
	ms, err := c.ReceiveMessages(ctx, queue, 1, o)
	if err != nil || len(ms) == 0 {
		return Message{}, false, err
	}
	return ms[0], true, nil
}

// ReceiveMessages delivers up to most visible messages, 1 to 1,000, in one step; fewer when they come to more than 1 MiB. It returns none when
// none is visible, which is no error; with Wait it returns as soon as there is one.
func (c *Client) ReceiveMessages(ctx context.Context, queue string, most int, o ReceiveOptions) ([]Message, error) {
	if err := firstOf(checkQueue(queue), checkMost(most)); err != nil {
		return nil, err
	}
	if o.Wait < 0 {
		return nil, &Error{ErrInvalidValue.Name, "the wait must not be negative"}
	}
	k, args := c.keys(queue), receiveArgs{Vt: span(o.VisibilityTimeout), Count: int64(most)}
	return poll(ctx, o.Wait, func() ([]Message, time.Duration, error) {
		args.Clock = c.pinned()
		reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
			return runReceive(ctx, c.redis, k, args).ToArray()
		})
		return readMessages("receive from", queue, reply, err)
	})
}

// PopMessage delivers the next visible message and deletes it: if this process dies now, the message is gone. ok is false when
// there is none.
func (c *Client) PopMessage(ctx context.Context, queue string) (m Message, ok bool, err error) {
	ms, err := c.PopMessages(ctx, queue, 1)
	if err != nil || len(ms) == 0 {
		return Message{}, false, err
	}
	return ms[0], true, nil
}

// PopMessages is PopMessage for up to most messages, 1 to 1,000, in one step; fewer when they come to more than 1 MiB.
func (c *Client) PopMessages(ctx context.Context, queue string, most int) ([]Message, error) {
	if err := firstOf(checkQueue(queue), checkMost(most)); err != nil {
		return nil, err
	}
	reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runPop(ctx, c.redis, c.keys(queue), popArgs{Clock: c.pinned(), Count: int64(most)}).ToArray()
	})
	ms, _, err := readMessages("pop from", queue, reply, err)
	return ms, err
}

func checkMost(n int) error {
	if n < 1 || n > receiveMost {
		return &Error{ErrInvalidValue.Name, "the number of messages must be between 1 and " + strconv.Itoa(receiveMost)}
	}
	return nil
}

// readMessages reads the answer of the receive and pop scripts, and how long it is until a message is visible (negative: none is
// there).
func readMessages(op, queue string, reply []rueidis.RedisMessage, err error) ([]Message, time.Duration, error) {
	const head, each = 2, 4
	if err != nil {
		return nil, 0, failed(op, queue, err, true)
	}
	if len(reply) < head || (len(reply)-head)%each != 0 {
		return nil, 0, &shortReply{op, len(reply)}
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
			return nil, 0, fmt.Errorf("rsmq: %s %q: %w", op, queue, err)
		}
		ms = append(ms, m)
	}
	return ms, time.Duration(next) * time.Millisecond, nil
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
