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

// sendPage bounds one call of the script; so does sendBytes.
const (
	sendPage  = 100
	sendBytes = 1 << 20
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
	k := c.keys(queue)
	items, err := sendItems(bodies)
	if late := firstOf(checkTime("delay", o.Delay), err); late != nil {
		// A queue that is not there is the graver error.
		if err := c.exists(ctx, k, queue); err != nil {
			return nil, err
		}
		return nil, late
	}
	ids := make([]string, 0, len(bodies))
	for len(items) > 0 {
		n, size := 0, 0
		for n < len(items) && n < 3*sendPage && (n == 0 || size+len(items[n+2]) <= sendBytes) {
			size += len(items[n+2])
			n += 3
		}
		page, err := c.sendPage(ctx, k, queue, items[:n], o)
		if err != nil {
			return ids, err
		}
		ids, items = append(ids, page...), items[n:]
	}
	return ids, nil
}

func sendItems(bodies []string) ([]string, error) {
	items := make([]string, 0, 3*len(bodies))
	for _, body := range bodies {
		n, ok := units(body)
		if !ok {
			return nil, fmt.Errorf("%w: the body is not valid UTF-8; send bytes as base64 or the like", ErrMessageNotString)
		}
		items = append(items, strconv.Itoa(n), randomPart(), body)
	}
	return items, nil
}

func (c *Client) sendPage(ctx context.Context, k keySet, queue string, items []string, o SendOptions) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	args := sendArgs{Clock: c.pinned(), Delay: milliseconds(o.Delay), Messages: items}
	if c.realtime {
		args.Channel = c.channel(queue)
	}
	reply, err := runSend(ctx, c.redis, k, args).ToArray()
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

// statusError is what the first item of a script's answer says. what names the time that the queue stores.
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
		return ErrMessageTooLong
	}
	return fmt.Errorf("rsmq: unknown status %d", status)
}

// exists returns ErrQueueNotFound, unless there is such a queue.
func (c *Client) exists(ctx context.Context, k keySet, queue string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	found, err := c.redis.Do(ctx, c.redis.B().Hmget().Key(k.Hash).Field("vt", "delay", "maxsize").Build()).ToArray()
	if err != nil {
		return failed("look up", queue, err, false)
	}
	for i := range found {
		if found[i].IsNil() {
			return ErrQueueNotFound
		}
	}
	return nil
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
