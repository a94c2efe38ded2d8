package xstreamq

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// Group is a consumer group of a queue as Redis has it, or one that it should have.
type Group struct {
	Name string
	// Registered: it is in the registry. One that is not was made by another program, or its registry was lost.
	Registered bool
	// Present: it is on the queue's stream. Registered and not present, it keeps the queue from being trimmed.
	Present bool
	// Pending is what its workers hold of the queue itself.
	Pending int64
	// Consumers is how many names it has; those of workers that are gone are among them for some minutes.
	Consumers int64
	// Lag is how many entries it was not given yet, as Redis counts them: where entries were deleted it may be wrong, which that of
	// Client.Lag is not. UnknownLag where Redis does not say, and when it is not present.
	Lag int64
	// Delivered is the id of the last entry that it was given. Empty when it is not present.
	Delivered string
	// Unfinished is the id before which it has finished with everything: of its oldest pending entry, or Delivered if that is lower. The queue
	// is trimmed up to the lowest of all groups.
	Unfinished string
}

// Groups lists the groups of a queue by name: those on its stream and those in the registry. ErrNoQueue. Without a deadline each
// call to Redis is given 5s.
func (c *Client) Groups(ctx context.Context, queue string) ([]Group, error) {
	if err := checkName("queue", queue); err != nil {
		return nil, err
	}
	groups, err := c.groups(ctx, queue)
	if err == nil && len(groups) == 0 {
		err = c.known(ctx, queue, "")
	}
	if err != nil {
		return nil, opError("groups", queue, "", err)
	}
	return groups, nil
}

// StreamGroups lists the groups that are on a queue's stream, by name, without a look into the registry: Registered is not set. It is
// Groups for many queues at once, beside one call of Registered. A queue that does not exist has none. Without a deadline each
// call to Redis is given 5s.
func (c *Client) StreamGroups(ctx context.Context, queue string) ([]Group, error) {
	if err := checkName("queue", queue); err != nil {
		return nil, err
	}
	groups, err := c.groupsOnStream(ctx, keys.ForQueue(c.cfg.KeyPrefix, queue).Queue)
	if err != nil {
		return nil, opError("groups", queue, "", err)
	}
	slices.SortFunc(groups, byName)
	return groups, nil
}

func (c *Client) groups(ctx context.Context, queue string) ([]Group, error) {
	k := keys.ForQueue(c.cfg.KeyPrefix, queue)
	groups, err := c.groupsOnStream(ctx, k.Queue)
	if err == nil {
		err = c.addOldest(ctx, k.Queue, groups)
	}
	if err != nil {
		return nil, err
	}
	registered, err := bounded(ctx, func(ctx context.Context) ([]string, error) { return c.groupsOf(ctx, k.Registry, queue) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(groups, byName)
	for _, name := range registered {
		i, ok := slices.BinarySearchFunc(groups, Group{Name: name}, byName)
		if !ok {
			groups = slices.Insert(groups, i, Group{Name: name, Lag: UnknownLag})
		}
		groups[i].Registered = true
	}
	return groups, nil
}

func byName(a, b Group) int { return cmp.Compare(a.Name, b.Name) }

// groupsOnStream asks for the groups of a stream.
func (c *Client) groupsOnStream(ctx context.Context, key string) ([]Group, error) {
	rc := c.redis
	answer, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisMessage, error) {
		return rc.Do(ctx, rc.B().XinfoGroups().Key(key).Build()).ToArray()
	})
	if groupGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, keyError(key, err)
	}
	groups := make([]Group, len(answer))
	for i := range answer {
		if groups[i], err = readGroup(&answer[i]); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// addOldest puts the oldest id that each group has pending into Unfinished.
func (c *Client) addOldest(ctx context.Context, key string, groups []Group) error {
	rc := c.redis
	var ask rueidis.Commands
	var of []*Group
	for i := range groups {
		if g := &groups[i]; g.Pending > 0 {
			ask = append(ask, rc.B().Xpending().Key(key).Group(g.Name).Start("-").End("+").Count(1).Build())
			of = append(of, g)
		}
	}
	if len(ask) == 0 {
		return nil
	}
	answers, err := bounded(ctx, func(ctx context.Context) ([]rueidis.RedisResult, error) { return rc.DoMulti(ctx, ask...), nil })
	if err != nil {
		return err
	}
	for i := range answers {
		rows, err := readPending(&answers[i]) // none when the group has gone by now
		if err != nil {
			return keyError(key, err)
		}
		if len(rows) > 0 && before(rows[0].ID, of[i].Delivered) {
			of[i].Unfinished = rows[0].ID
		}
	}
	return nil
}

// before compares two ids of entries.
func before(a, b string) bool {
	x, readX := wire.ParseID(a)
	y, readY := wire.ParseID(b)
	return readX && readY && x.Less(y)
}

func readGroup(m *rueidis.RedisMessage) (Group, error) {
	about := readInfo(m)
	g := Group{Name: about.string("name"), Present: true, Pending: about.int("pending"), Consumers: about.int("consumers"),
		Delivered: about.string("last-delivered-id"), Lag: UnknownLag}
	if lag, said := about.fields["lag"]; said && !lag.IsNil() {
		g.Lag = about.int("lag")
	}
	if !strings.Contains(g.Delivered, "-") {
		g.Delivered += "-0" // the embedded server says 0
	}
	g.Unfinished = g.Delivered
	return g, about.err
}
