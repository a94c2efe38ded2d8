package rsmq

import (
	"context"
	"time"
)

// DeleteMessage deletes a message, whoever holds it, and reports whether it was there.
func (c *Client) DeleteMessage(ctx context.Context, queue, id string) (bool, error) {
	if err := firstOf(checkQueue(queue), checkID(id)); err != nil {
		return false, err
	}
	return c.delete(ctx, queue, id)
}

// delete is DeleteMessage for any id: also one that another program made up.
func (c *Client) delete(ctx context.Context, queue, id string) (bool, error) {
	found, err := share(ctx, c, &c.deletes, queue, id)
	return found, failed("delete from", queue, err, true)
}

// serveDeletes deletes the messages of several callers.
func (c *Client) serveDeletes(ctx context.Context, queue string, ids []string) []outcome[bool] {
	found, err := c.deletePage(ctx, queue, ids)
	out := make([]outcome[bool], len(ids))
	for i := range out {
		if out[i].err = err; err == nil {
			out[i].value = found[i] == 1
		}
	}
	return out
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
	found := make([]bool, 0, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), deletePage)
		page, err := c.deletePage(ctx, queue, ids[:n])
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

func (c *Client) deletePage(ctx context.Context, queue string, ids []string) ([]int64, error) {
	found, err := call(ctx, c, func(ctx context.Context) ([]int64, error) {
		return runDelete(ctx, c.redis, c.keys(queue), deleteArgs{IDs: ids}).AsIntSlice()
	})
	if err == nil && len(found) != len(ids) {
		err = &replyError{"delete", len(found)}
	}
	return found, err
}

// PurgeMessages deletes up to most messages of a queue, 1 to 1,000, in one step and the next ones first: hidden ones too, and those with an id or
// without a body that no other call can delete. It returns how many there were; less than most says that no more are left.
func (c *Client) PurgeMessages(ctx context.Context, queue string, most int) (int, error) {
	if err := firstOf(checkQueue(queue), checkMost(most)); err != nil {
		return 0, err
	}
	n, err := call(ctx, c, func(ctx context.Context) (int64, error) {
		return runPurge(ctx, c.redis, c.keys(queue), purgeArgs{Count: int64(most)}).AsInt64()
	})
	switch {
	case err != nil:
		return 0, failed("purge", queue, err, true)
	case n < 0:
		return 0, ErrQueueNotFound
	}
	return int(n), nil
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
