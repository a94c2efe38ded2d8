package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redisconn"
	"github.com/xstreamq/xstreamq/internal/rediserr"
)

// bounded is redisconn.Call with the limit of a command.
func bounded[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	return redisconn.Call(ctx, commandTimeout, call)
}

// changed is redisconn.Change with the limit of a command.
func changed[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	return redisconn.Change(ctx, commandTimeout, call)
}

// checkNames refuses names that may not go into a key.
func checkNames(queue, group string) error {
	return errors.Join(checkName("queue", queue), checkName("group", group))
}

// opError says which operation failed, on what.
func opError(op, queue, group string, err error) error {
	if group == "" {
		return fmt.Errorf("xstreamq: %s of queue %q: %w", op, queue, err)
	}
	return fmt.Errorf("xstreamq: %s of queue %q, group %q: %w", op, queue, group, err)
}

// keyError names the key of a command that Redis refused, which most of its errors do not. It is for commands and scripts of one key.
// Errors that name theirs, or that may be about another key, are left as they are.
func keyError(key string, err error) error {
	switch code := redisCode(err); {
	case code == "", code == "XQTYPE", rediserr.DeniedInScript(err):
		return err
	}
	return fmt.Errorf("key %s: %w", key, err)
}

// known returns nil if there is such a group, ErrNoQueue or ErrNoGroup if not. It is asked when an operation found nothing, so
// that a slip of the pen does not pass for an empty queue. A group is known by its place on the queue, by the registry, or by a
// key of its own; for an empty group name, the queue by its keys or by the registry. A registry that may not be read knows nobody.
func (c *Client) known(ctx context.Context, queue, group string) error {
	k := keys.ForGroup(c.cfg.KeyPrefix, queue, group)
	b := c.redis.B()
	found, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisResult, error) {
		return c.redis.DoMulti(ctx, b.Exists().Key(k.Queue, k.Delayed).Build(), b.Exists().Key(k.Retry, k.Backoff, k.DLQ).Build()), nil
	})
	if err != nil {
		return err
	}
	ofQueue, err := found[0].AsInt64()
	if err != nil {
		return err
	}
	ofGroup, err := found[1].AsInt64()
	if err != nil {
		return err
	}
	if ofGroup > 0 || group == "" && ofQueue > 0 {
		return nil
	}
	// Asked after that: it takes long where there are thousands.
	onStream, err := c.groupsOnStream(ctx, k.Queue)
	if err != nil {
		return err
	}
	if group != "" && slices.ContainsFunc(onStream, func(g Group) bool { return g.Name == group }) {
		return nil
	}
	registered, err := bounded(ctx, func(ctx context.Context) ([]string, error) { return c.groupsOf(ctx, k.Registry, queue) })
	switch {
	case err != nil && redisCode(err) != "NOPERM":
		return err
	case slices.Contains(registered, group), group == "" && len(registered) > 0:
		return nil
	case ofQueue == 0:
		return fmt.Errorf("%w: the key %s does not exist", ErrNoQueue, k.Queue)
	}
	return fmt.Errorf("%w: there is none on %s, nor in the registry", ErrNoGroup, k.Queue)
}

// info is one of the maps that XINFO answers with. The first error stays.
type info struct {
	fields map[string]rueidis.RedisMessage
	err    error
}

func readInfo(m *rueidis.RedisMessage) info {
	fields, err := m.AsMap()
	return info{fields, err}
}

func (i *info) int(name string) int64 {
	m := i.fields[name]
	n, err := m.AsInt64()
	i.note(name, err)
	return n
}

func (i *info) string(name string) string {
	m := i.fields[name]
	s, err := m.ToString()
	i.note(name, err)
	return s
}

func (i *info) note(name string, err error) {
	if err != nil && i.err == nil {
		i.err = fmt.Errorf("reading %s of an XINFO answer: %w", name, err)
	}
}
