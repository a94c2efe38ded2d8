package rsmq

import (
	"context"
	"time"
)

// DeleteMessage deletes a message, whoever holds it, and reports whether it was there.
func (c *Client) DeleteMessage(ctx context.Context, queue, id string) (bool, error) {
	found, err := c.DeleteMessages(ctx, queue, []string{id})
	return len(found) == 1 && found[0], err
}

// deletePage bounds one call of the script.
const deletePage = 500

// DeleteMessages deletes messages and reports for each whether it was there. All ids are checked before the first is deleted. They are
// deleted in pages of 500; an error comes with what the pages before it found.
func (c *Client) DeleteMessages(ctx context.Context, queue string, ids []string) ([]bool, error) {
	if err := checkQueue(queue); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return nil, err
		}
	}
	k := c.keys(queue)
	found := make([]bool, 0, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), deletePage)
		page, err := c.deletePage(ctx, k, ids[:n])
		if err != nil {
			return found, failed("delete from", queue, err, true)
		}
		for _, was := range page {
			found = append(found, was == 1)
		}
		ids = ids[n:]
	}
	return found, nil
}

func (c *Client) deletePage(ctx context.Context, k keySet, ids []string) ([]int64, error) {
	return call(ctx, c, func(ctx context.Context) ([]int64, error) {
		return runDelete(ctx, c.redis, k, deleteArgs{IDs: ids}).AsIntSlice()
	})
}

// ChangeMessageVisibility makes a message visible d from now, to the millisecond, whether it is hidden or not and whoever holds it. It reports whether
// there is such a message.
func (c *Client) ChangeMessageVisibility(ctx context.Context, queue, id string, d time.Duration) (bool, error) {
	if err := firstOf(checkQueue(queue), checkID(id), checkTime("vt", &d)); err != nil {
		return false, err
	}
	return c.hide(ctx, queue, id, d)
}

// hide is ChangeMessageVisibility for any id: also one that another program made up.
func (c *Client) hide(ctx context.Context, queue, id string, d time.Duration) (bool, error) {
	status, err := call(ctx, c, func(ctx context.Context) (int64, error) {
		return runExtend(ctx, c.redis, c.keys(queue), extendArgs{Clock: c.pinned(), ID: id, Vt: milliseconds(d)}).AsInt64()
	})
	if err != nil {
		return false, failed("change visibility in", queue, err, true)
	}
	if status == extendNoQueue {
		return false, ErrQueueNotFound
	}
	return status == extendExtended, nil
}
