package rsmq_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

// exampleClient is a client of a server for examples, with the queue orders. Programs write rsmq.Open("redis://localhost:6379", rsmq.Config{}).
func exampleClient(cfg rsmq.Config) (client *rsmq.Client, done func()) {
	url, prefix, clean := redistest.Example()
	cfg.Namespace = prefix + "rsmq"
	client, err := rsmq.Open(url, cfg)
	if err == nil {
		err = client.CreateQueue(context.Background(), "orders", rsmq.QueueOptions{})
	}
	if err != nil {
		panic(err)
	}
	return client, func() {
		client.Close()
		clean()
	}
}

// One process sends, another one, of Go or Node, receives.
func Example() {
	client, done := exampleClient(rsmq.Config{})
	defer done()
	ctx := context.Background()

	if _, err := client.SendMessage(ctx, "orders", `{"id":1}`, rsmq.SendOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	m, ok, err := client.ReceiveMessage(ctx, "orders", rsmq.ReceiveOptions{})
	if err != nil || !ok {
		fmt.Println("nothing to do:", err)
		return
	}
	fmt.Printf("received %s, delivery %d\n", m.Body, m.ReceiveCount)
	deleted, err := client.DeleteMessage(ctx, "orders", m.ID)
	fmt.Println("deleted:", deleted, err)
	// Output:
	// received {"id":1}, delivery 1
	// deleted: true <nil>
}

// A queue with other attributes than the usual ones. A nil option is the default; Seconds(0) is no time at all.
func ExampleClient_CreateQueue() {
	client, done := exampleClient(rsmq.Config{})
	defer done()
	ctx := context.Background()

	err := client.CreateQueue(ctx, "mail", rsmq.QueueOptions{
		VisibilityTimeout: rsmq.Seconds(60), MaxSize: rsmq.Size(rsmq.Unlimited),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	a, err := client.SetQueueAttributes(ctx, "mail", rsmq.QueueChanges{Delay: rsmq.Seconds(5)})
	fmt.Println(a.VisibilityTimeout, a.Delay, a.MaxSize, err)
	fmt.Println(client.CreateQueue(ctx, "mail", rsmq.QueueOptions{}))
	// Output:
	// 1m0s 5s -1 <nil>
	// rsmq: queueExists: Queue exists
}

// Errors have the names of the Node package.
func ExampleError() {
	client, done := exampleClient(rsmq.Config{})
	defer done()

	_, err := client.SendMessage(context.Background(), "nowhere", "hello", rsmq.SendOptions{})
	var refused *rsmq.Error
	switch {
	case errors.Is(err, rsmq.ErrUncertain):
		fmt.Println("it may have been stored")
	case errors.As(err, &refused):
		fmt.Println(refused.Name, "-", refused.Message, "-", errors.Is(err, rsmq.ErrQueueNotFound))
	}
	// Output: queueNotFound - Queue not found - true
}

// Many messages with few round trips, and a wait for the first of them.
func ExampleClient_ReceiveMessages() {
	client, done := exampleClient(rsmq.Config{})
	defer done()
	ctx := context.Background()

	if _, err := client.SendMessages(ctx, "orders", []string{"a", "b", "c"}, rsmq.SendOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	ms, err := client.ReceiveMessages(ctx, "orders", 100, rsmq.ReceiveOptions{Wait: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	var ids []string
	for _, m := range ms {
		fmt.Println(m.Body)
		ids = append(ids, m.ID)
	}
	deleted, err := client.DeleteMessages(ctx, "orders", ids)
	fmt.Println(deleted, err)
	// Output:
	// a
	// b
	// c
	// [true true true] <nil>
}

// A worker handles messages until its context ends.
func ExampleWorker() {
	client, done := exampleClient(rsmq.Config{})
	defer done()
	ctx, stop := context.WithCancel(context.Background())

	w, err := client.NewWorker("orders", func(_ context.Context, m rsmq.Message) error {
		fmt.Println("handle", m.Body)
		return nil // which deletes it; rsmq.ErrKeep or any error leaves it for another time
	}, rsmq.WorkerOptions{Events: rsmq.WorkerEvents{
		Deleted: func(string) { stop() },
		Error:   func(err error, _ *rsmq.Message) { fmt.Println(err) },
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := w.Send(ctx, "tea", rsmq.Seconds(0)); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Run(ctx))
	// Output:
	// handle tea
	// <nil>
}

// A subscriber hears of each send of a client with Realtime, of Go or Node.
func ExampleClient_Subscribe() {
	client, done := exampleClient(rsmq.Config{Realtime: true})
	defer done()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	heard := make(chan int64, 1)
	go func() {
		_ = client.Subscribe(ctx, "orders", func(messages int64) {
			select {
			case heard <- messages: // a reason to receive now
			default:
			}
		})
	}()
	for len(heard) == 0 { // until it has subscribed
		if _, err := client.SendMessage(ctx, "orders", "news", rsmq.SendOptions{}); err != nil {
			fmt.Println(err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("there are messages:", <-heard > 0)
	// Output: there are messages: true
}
