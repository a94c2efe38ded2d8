package peer

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// The bare loop is the three commands of a consumer group and nothing else, on a connection with the settings of xstreamq.Open: what
// the client library and the server allow.

const (
	bareStream = "{bench}"
	bareCount  = 500
)

func openBare(url string) (rueidis.Client, error) {
	opts, err := rueidis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	opts.DisableCache = true
	opts.AlwaysPipelining = true
	opts.PipelineMultiplex = -1
	opts.MaxFlushDelay = 20 * time.Microsecond
	opts.ReadBufferEachConn = 128 << 10
	opts.WriteBufferEachConn = 128 << 10
	return rueidis.NewClient(opts)
}

func bareProducer(_ context.Context, url string, _ int) (store, func(), error) {
	c, err := openBare(url)
	if err != nil {
		return nil, nil, err
	}
	put := func(ctx context.Context, bodies [][]byte) error {
		return c.Do(ctx, c.B().Xadd().Key(bareStream).Id("*").FieldValue().FieldValue("body", rueidis.BinaryString(bodies[0])).Build()).Error()
	}
	return put, c.Close, nil
}

func bareWorker(ctx context.Context, url string, handle func([]byte)) (func(), error) {
	c, err := openBare(url)
	if err != nil {
		return nil, err
	}
	err = c.Do(ctx, c.B().XgroupCreate().Key(bareStream).Group(group).Id("0").Mkstream().Build()).Error()
	if err != nil && !rueidis.IsRedisBusyGroup(err) {
		c.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var loop sync.WaitGroup
	loop.Go(func() {
		conn, release := c.Dedicate()
		defer release()
		for ctx.Err() == nil {
			if bareRound(ctx, conn, handle) != nil {
				return
			}
		}
	})
	return func() { cancel(); loop.Wait(); c.Close() }, nil
}

// bareRound reads some messages, handles them one after the other, and acknowledges them at once.
func bareRound(ctx context.Context, c rueidis.DedicatedClient, handle func([]byte)) error {
	read := c.B().Xreadgroup().Group(group, "bare").Count(bareCount).Block(100).Streams().Key(bareStream).Id(">").Build()
	reply, err := c.Do(ctx, read).AsXReadSlices()
	if rueidis.IsRedisNil(err) {
		return nil
	}
	if err != nil {
		return err
	}
	entries := reply[bareStream]
	ids := make([]string, len(entries))
	for i, entry := range entries {
		ids[i] = entry.ID
		handle([]byte(entry.FieldValues[0].Value))
	}
	return c.Do(ctx, c.B().Xack().Key(bareStream).Group(group).Id(ids...).Build()).Error()
}
