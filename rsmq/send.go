package rsmq

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	sendPage  = 100 // bounds one call of the script; so does
	sendBytes = 1 << 20

	notText = -1 // length of a body that is no text
)

// SendMessage stores a message and returns its id. The body is text: ErrMessageNotString if it is not valid UTF-8.
func (c *Client) SendMessage(ctx context.Context, queue, body string, o SendOptions) (string, error) {
	ids, err := c.SendMessages(ctx, queue, []string{body}, o)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// SendMessages stores messages in order and returns their ids. They are written in pages of 100 messages or 1 MiB, each whole or not at all. An
// error comes with the ids of the pages before it; ErrUncertain says that the page after these may have been stored.
func (c *Client) SendMessages(ctx context.Context, queue string, bodies []string, o SendOptions) ([]string, error) {
	if err := checkQueue(queue); err != nil {
		return nil, err
	}
	args := sendArgs{Delay: span(o.Delay)}
	if c.realtime {
		args.Channel = c.channel(queue)
	}
	k := c.keys(queue)
	ids := make([]string, 0, len(bodies))
	for len(ids) < len(bodies) {
		left := bodies[len(ids):]
		args.Clock, args.Messages = c.pinned(), sendItems(left)
		page, err := c.sendPage(ctx, k, queue, args)
		if err != nil {
			return ids, err
		}
		ids = append(ids, page...)
	}
	return ids, nil
}

// sendItems are a page of the bodies as the script wants them. What is no text goes there too, without its bytes: the script knows which
// error comes first.
func sendItems(bodies []string) []string {
	items := make([]string, 0, 3*min(sendPage, len(bodies)))
	size := 0
	for _, body := range bodies {
		if size += len(body); len(items) == 3*sendPage || len(items) > 0 && size > sendBytes {
			break
		}
		n, ok := units(body)
		if !ok {
			body, n = "", notText
		}
		items = append(items, strconv.Itoa(n), randomPart(), body)
	}
	return items
}

func (c *Client) sendPage(ctx context.Context, k keySet, queue string, args sendArgs) ([]string, error) {
	reply, err := call(ctx, c, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return runSend(ctx, c.redis, k, args).ToArray()
	})
	if err != nil {
		return nil, failed("send to", queue, err, true)
	}
	if len(reply) == 0 {
		return nil, &shortReply{"send", 0}
	}
	if err := statusError(reply[0], "delay"); err != nil {
		return nil, err
	}
	ids := make([]string, len(reply)-1)
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
