package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// ErrGroupInUse is what Forget refuses with: the group has live workers or messages.
var ErrGroupInUse = errors.New("xstreamq: the group is in use")

// ForgetOptions say what Forget may lose.
type ForgetOptions struct {
	// Force forgets a group that has live workers, or messages that are pending, to be retried or in backoff: the messages are lost to this
	// group. Dead letters are never lost: purge or redrive them first.
	Force bool
}

// Forget removes a group that is gone for good, so that what it has not read no longer keeps the queue from being trimmed: first its row in the
// registry, then its consumer group with its keys. It is ErrGroupInUse, saying what is in the way, while the group has dead letters, also with
// Force, and without it while it has live workers or messages that are pending, to be retried or in backoff. What it has not been given yet
// does not count.
//
// It may be called again after an error or a crash. A worker that still runs makes the group anew, from the beginning of
// the queue. ErrNoQueue, ErrNoGroup. Without a deadline each call to Redis is given 5s.
func (c *Client) Forget(ctx context.Context, queue, group string, o ForgetOptions) error {
	if err := checkNames(queue, group); err != nil {
		return err
	}
	f := forgetting{client: c, keys: keys.ForGroup(c.cfg.KeyPrefix, queue, group), queue: queue, group: group, force: o.Force}
	if err := f.run(ctx); err != nil {
		return opError("forget", queue, group, err)
	}
	return nil
}

// forgetting is one call of Forget.
type forgetting struct {
	client       *Client
	keys         keys.Set
	queue, group string
	force        bool
}

func (f *forgetting) run(ctx context.Context) error {
	row, registered, err := f.row(ctx)
	if err != nil {
		return err
	}
	code, left, err := f.ask(ctx, f.survey)
	if err != nil {
		return err
	}
	if code == surveyNothing && !registered {
		if err := f.client.known(ctx, f.queue, f.group); err != nil {
			return err
		}
	}
	if why := left.inTheWay(f.force); why != "" {
		return fmt.Errorf("%w: %s", ErrGroupInUse, why)
	}
	if err := f.checkWorkers(ctx); err != nil {
		return err
	}
	if err := f.unregister(ctx); err != nil {
		return err
	}
	err = f.remove(ctx)
	if registered && (errors.Is(err, ErrGroupInUse) || redisCode(err) != "") {
		return errors.Join(err, f.register(ctx, row))
	}
	return err
}

// remove destroys the group and its keys, in pages.
func (f *forgetting) remove(ctx context.Context) error {
	for {
		code, left, err := f.ask(ctx, f.forget)
		switch {
		case err != nil:
			return err
		case code == forgetForgotten:
			return nil
		case code == forgetInUse:
			return fmt.Errorf("%w: %s", ErrGroupInUse, left.inTheWay(f.force))
		case code == forgetCrowded:
			if err := f.deleteConsumers(ctx); err != nil {
				return err
			}
		}
		pause(ctx, clock) // others have their turn
	}
}

// deleteConsumers deletes those of the queue itself that hold nothing, which is all of them by then.
func (f *forgetting) deleteConsumers(ctx context.Context) error {
	consumers, err := f.client.consumers(ctx, f.queue, f.group)
	if err != nil {
		return err
	}
	names := make([]string, len(consumers))
	for i := range consumers {
		names[i] = consumers[i].Name
	}
	_, err = bounded(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.client.reap(ctx, &lane{keys: f.keys, group: f.group}, names)
	})
	return err
}

// survey and forget each take one of the two locks of the sweepers with them: survey to see whether it may.
func (f *forgetting) survey(ctx context.Context) rueidis.RedisResult {
	return runSurvey(ctx, f.client.redis, f.keys, surveyArgs{Group: f.group})
}

func (f *forgetting) forget(ctx context.Context) rueidis.RedisResult {
	return runForget(ctx, f.client.redis, f.keys.OnRetry(f.group), forgetArgs{Group: f.group, Force: f.force})
}

// leftover is what a group holds.
type leftover struct{ pending, retry, backoff, dead int64 }

func (f *forgetting) ask(ctx context.Context, script func(context.Context) rueidis.RedisResult) (code int64, left leftover, err error) {
	reply, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) { return script(ctx).ToArray() })
	if err != nil {
		return 0, leftover{}, err
	}
	r := replyReader{reply: reply}
	code = r.int()
	left = leftover{pending: r.int(), retry: r.int(), backoff: r.int(), dead: r.int()}
	return code, left, r.err
}

// inTheWay says what of it may not be lost, and what to do; empty when nothing.
func (l leftover) inTheWay(force bool) string {
	if l.dead > 0 {
		return fmt.Sprintf("it has %s; redrive or purge them first", counted(l.dead, "dead letter"))
	}
	if force || l.pending+l.retry+l.backoff == 0 {
		return ""
	}
	return fmt.Sprintf("it has %s pending, %d to be retried and %d in backoff; let workers finish them, or give them up with Force",
		counted(l.pending, "message"), l.retry, l.backoff)
}

func counted(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkWorkers returns ErrGroupInUse while there are live ones, unless forced.
func (f *forgetting) checkWorkers(ctx context.Context) error {
	if f.force {
		return nil
	}
	consumers, err := f.client.consumers(ctx, f.queue, f.group)
	if err != nil {
		return err
	}
	const named = 3
	var live []string
	for _, c := range consumers {
		if c.Live {
			live = append(live, c.Name)
		}
	}
	if len(live) == 0 {
		return nil
	}
	names := strings.Join(live[:min(len(live), named)], ", ")
	if len(live) > named {
		names += ", ..."
	}
	return fmt.Errorf("%w: it has %s (%s); stop them first, or use Force", ErrGroupInUse, counted(int64(len(live)), "live worker"), names)
}

// row returns what the registry says of the group.
func (f *forgetting) row(ctx context.Context) (row string, registered bool, err error) {
	row, err = bounded(ctx, func(ctx context.Context) (string, error) {
		b := f.client.redis.B()
		return f.client.redis.Do(ctx, b.Hget().Key(f.keys.Registry).Field(keys.Member(f.queue, f.group)).Build()).ToString()
	})
	if rueidis.IsRedisNil(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, keyError(f.keys.Registry, err)
	}
	return row, true, nil
}

func (f *forgetting) unregister(ctx context.Context) error {
	_, err := bounded(ctx, func(ctx context.Context) (int64, error) {
		b := f.client.redis.B()
		return f.client.redis.Do(ctx, b.Hdel().Key(f.keys.Registry).Field(keys.Member(f.queue, f.group)).Build()).AsInt64()
	})
	if err != nil {
		return keyError(f.keys.Registry, err)
	}
	return nil
}

// register puts the row back, unless a worker has written a new one.
func (f *forgetting) register(ctx context.Context, row string) error {
	_, err := bounded(context.WithoutCancel(ctx), func(ctx context.Context) (bool, error) {
		b := f.client.redis.B()
		return f.client.redis.Do(ctx, b.Hsetnx().Key(f.keys.Registry).Field(keys.Member(f.queue, f.group)).Value(row).Build()).AsBool()
	})
	if err != nil {
		return fmt.Errorf("its row in the registry is gone, and cannot be put back: %w", keyError(f.keys.Registry, err))
	}
	return nil
}
