package peer

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

const (
	asynqTask = "bench"
	// asynqCheck is how soon an idle server looks again; the default of 1s would be its latency.
	asynqCheck = 5 * time.Millisecond
)

func asynqAddr(url string, pool int) (asynq.RedisClientOpt, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return asynq.RedisClientOpt{}, err
	}
	return asynq.RedisClientOpt{Addr: opts.Addr, PoolSize: pool}, nil
}

func asynqProducer(_ context.Context, url string, callers int) (store, func(), error) {
	addr, err := asynqAddr(url, callers)
	if err != nil {
		return nil, nil, err
	}
	c := asynq.NewClient(addr)
	put := func(ctx context.Context, bodies [][]byte) error {
		_, err := c.EnqueueContext(ctx, asynq.NewTask(asynqTask, bodies[0]))
		return err
	}
	return put, func() { _ = c.Close() }, c.Ping()
}

func asynqWorker(_ context.Context, url string, handle func([]byte)) (func(), error) {
	addr, err := asynqAddr(url, concurrency+8)
	if err != nil {
		return nil, err
	}
	s := asynq.NewServer(addr, asynq.Config{Concurrency: concurrency, TaskCheckInterval: asynqCheck, LogLevel: asynq.FatalLevel})
	err = s.Start(asynq.HandlerFunc(func(_ context.Context, task *asynq.Task) error {
		handle(task.Payload())
		return nil
	}))
	return s.Shutdown, err
}
