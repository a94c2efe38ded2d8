package rsmq

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// SendOptions are for one send.
type SendOptions struct {
	// Delay is how long the message waits until it is visible, to the millisecond; a Node process sends whole seconds only. nil: as the queue
	// says. 0 means at once.
	Delay *time.Duration
}

const (
	sendMost  = 100     // messages of one call of the script, and
	sendBytes = 1 << 20 // bytes

	notText = -1 // length of a body that is no text
)

// SendMessage stores a message and returns its id. The body is text: ErrMessageNotString if it is not valid UTF-8.
func (c *Client) SendMessage(ctx context.Context, queue, body string, o SendOptions) (string, error) {
	if err := checkQueue(queue); err != nil {
		return "", err
	}
	id, err := share(ctx, c, &c.sends, queueTime{queue, span(o.Delay)}, body)
	return id, failed("send to", queue, err, true)
}

// serveSends stores the messages of several callers. A bad one does not harm the others.
func (c *Client) serveSends(ctx context.Context, to queueTime, bodies []string) []outcome[string] {
	out := make([]outcome[string], 0, len(bodies))
	for len(out) < len(bodies) {
		page := sendPage(bodies[len(out):])
		ids, err := c.send(ctx, to, page)
		switch {
		case err == nil:
			for _, id := range ids {
				out = append(out, outcome[string]{value: id})
			}
		case len(page) > 1 && (errors.Is(err, ErrMessageTooLong) || errors.Is(err, ErrMessageNotString)):
			half := len(page) / 2 // few calls find the bad one
			out = append(out, c.serveSends(ctx, to, page[:half])...)
			out = append(out, c.serveSends(ctx, to, page[half:])...)
		default:
			out = append(out, slices.Repeat([]outcome[string]{{err: err}}, len(page))...)
		}
	}
	return out
}

// SendMessages stores messages in order and returns their ids. They are written in pages of 100 messages or 1 MiB, each whole or not at all. An
// error comes with the ids of the pages before it; ErrUncertain says that the page after these may have been stored.
func (c *Client) SendMessages(ctx context.Context, queue string, bodies []string, o SendOptions) ([]string, error) {
	if err := checkQueue(queue); err != nil {
		return nil, err
	}
	to := queueTime{queue, span(o.Delay)}
	ids := make([]string, 0, len(bodies))
	for len(ids) < len(bodies) {
		page, err := c.send(ctx, to, sendPage(bodies[len(ids):]))
		if err != nil {
			return ids, failed("send to", queue, err, true)
		}
		ids = append(ids, page...)
	}
	return ids, nil
}

// sendPage is the first part of the bodies that one call of the script takes.
func sendPage(bodies []string) []string {
	n, size := 0, 0
	for n < min(len(bodies), sendMost) {
		if size += len(bodies[n]); n > 0 && size > sendBytes {
			break
		}
		n++
	}
	return bodies[:n]
}

// queueTime is a queue, and how long its messages are delayed, or hidden: see span.
type queueTime struct {
	queue string
	ms    int64
}

// send stores a page. What is no text goes to the script too, without its bytes: it knows which error comes first.
func (c *Client) send(ctx context.Context, to queueTime, page []string) ([]string, error) {
	args := sendArgs{Clock: c.pinned(), Delay: to.ms, Messages: make([]string, 0, 3*len(page))}
	if c.realtime {
		args.Channel = c.channel(to.queue)
	}
	for _, body := range page {
		n, ok := units(body)
		if !ok {
			body, n = "", notText
		}
		args.Messages = append(args.Messages, strconv.Itoa(n), randomPart(), body)
	}
	reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runSend(ctx, c.redis, c.keys(to.queue), args).ToArray()
	})
	if err != nil {
		return nil, err
	}
	if len(reply) == 0 {
		return nil, &replyError{"send", 0}
	}
	if err := statusError(reply[0], "delay"); err != nil {
		return nil, err
	}
	if len(reply) != 1+len(page) {
		return nil, &replyError{"send", len(reply)}
	}
	ids := make([]string, len(page))
	for i := range ids {
		if ids[i], err = reply[i+1].ToString(); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// statusError is what the first item of a script's answer says. what names the time that is out of range.
func statusError(m rueidis.RedisMessage, what string) error {
	status, err := m.AsInt64()
	if err != nil {
		return err
	}
	switch status {
	case 0:
		return nil
	case 1:
		return ErrQueueNotFound
	case 2:
		return invalidValue(what, "0 and 9999999")
	case 3:
		return fmt.Errorf("%w: the body is not valid UTF-8; send bytes as base64 or the like", ErrMessageNotString)
	case 4:
		return ErrMessageTooLong
	}
	return fmt.Errorf("rsmq: unknown status %d", status)
}

const (
	alphabet     = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	randomLength = idLength - timeLength
)

// randomPart makes an id unique; its beginning is the time, which the server knows.
func randomPart() string {
	var b [randomLength]byte
	for i := range b {
		b[i] = alphabet[rand.IntN(len(alphabet))]
	}
	return string(b[:])
}
