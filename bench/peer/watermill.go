package peer

import (
	"context"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/redis/go-redis/v9"
)

// watermillSubscribers of one process share the group: each takes one message at a time.
const watermillSubscribers = 16

func openWatermill(url string, pool int) (*redis.Client, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	opts.PoolSize = pool
	return redis.NewClient(opts), nil
}

func watermillProducer(ctx context.Context, url string, callers int) (store, func(), error) {
	c, err := openWatermill(url, callers)
	if err != nil {
		return nil, nil, err
	}
	p, err := redisstream.NewPublisher(redisstream.PublisherConfig{Client: c}, watermill.NopLogger{})
	if err != nil {
		return nil, nil, err
	}
	put := func(_ context.Context, bodies [][]byte) error {
		return p.Publish(queue, message.NewMessage(watermill.NewShortUUID(), bodies[0]))
	}
	return put, func() { _ = p.Close() }, c.Ping(ctx).Err()
}

func watermillWorker(ctx context.Context, url string, handle func([]byte)) (func(), error) {
	c, err := openWatermill(url, 3*watermillSubscribers)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := func() { cancel(); _ = c.Close() }
	for range watermillSubscribers {
		s, err := redisstream.NewSubscriber(redisstream.SubscriberConfig{
			Client: c, ConsumerGroup: group, DisableIndefiniteInitialBlock: true,
		}, watermill.NopLogger{})
		if err != nil {
			return stop, err
		}
		messages, err := s.Subscribe(ctx, queue)
		if err != nil {
			return stop, err
		}
		go func() {
			for m := range messages {
				handle(m.Payload)
				m.Ack()
			}
		}()
	}
	return stop, nil
}
