package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Purchase is what the examples queue.
type Purchase struct {
	ID   int    `json:"id"`
	Item string `json:"item"`
}

// A program that publishes and handles messages. Run ends when its context does, which is usually that of signal.NotifyContext.
func Example() {
	url, prefix, done := redistest.Example() // redis://localhost:6379
	defer done()

	client, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	purchases, err := xstreamq.NewQueue[Purchase](client, "purchases")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	_, err = purchases.Subscribe("billing", func(_ context.Context, m *xstreamq.Message[Purchase]) error {
		fmt.Printf("bill purchase %d for %s, attempt %d\n", m.Body.ID, m.Header["tenant"], m.Attempt)
		stop()
		return nil
	}, xstreamq.SubscribeOptions{MaxRetries: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := purchases.Publish(ctx, Purchase{ID: 1, Item: "tea"}, xstreamq.WithHeader("tenant", "acme")); err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output: bill purchase 1 for acme, attempt 1
}

// Every message of a batch has a result of its own.
func ExampleQueue_PublishBatch() {
	url, prefix, done := redistest.Example()
	defer done()
	client, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix, MaxBodySize: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	purchases, err := xstreamq.NewQueue[Purchase](client, "purchases")
	if err != nil {
		fmt.Println(err)
		return
	}
	results := purchases.PublishBatch(context.Background(), []xstreamq.Outgoing[Purchase]{
		{Body: Purchase{ID: 1, Item: "tea"}},
		{Body: Purchase{ID: 2, Item: fmt.Sprintf("%100s", "too much")}},
		{Body: Purchase{ID: 3, Item: "jam"}, Options: []xstreamq.PublishOption{xstreamq.WithDelay(time.Hour)}},
	})
	for i, r := range results {
		switch {
		case r.Err == nil:
			fmt.Println(i, "stored")
		case errors.Is(r.Err, xstreamq.ErrPublishUncertain):
			fmt.Println(i, "may be stored")
		default:
			fmt.Println(i, "not stored, too large:", errors.Is(r.Err, xstreamq.ErrTooLarge))
		}
	}
	// Output:
	// 0 stored
	// 1 not stored, too large: true
	// 2 stored
}

// What a handler returns decides what becomes of the message: nil ends it, a plain error retries it with a backoff, and the
// verdicts say more.
func ExampleQueue_Subscribe_verdicts() {
	url, prefix, done := redistest.Example()
	defer done()
	client, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	purchases, err := xstreamq.NewQueue[Purchase](client, "purchases")
	if err != nil {
		fmt.Println(err)
		return
	}
	retried, buried := make(chan struct{}), make(chan struct{})
	_, err = purchases.Subscribe("billing", func(_ context.Context, m *xstreamq.Message[Purchase]) error {
		switch m.Body.Item {
		case "sold out":
			if m.Attempt == 1 {
				return xstreamq.RetryAfter(50*time.Millisecond, errors.New("not delivered yet"))
			}
			fmt.Println("sold out: handled at attempt", m.Attempt)
			close(retried)
			return nil
		case "unknown":
			return xstreamq.DeadLetter(errors.New("no such item"))
		case "cancelled":
			return xstreamq.Discard(errors.New("nobody wants it"))
		}
		fmt.Println(m.Body.Item, "handled")
		return nil
	}, xstreamq.SubscribeOptions{
		OnDeadLetter: func(_ context.Context, d xstreamq.DeadMessage) {
			fmt.Printf("dead letter, %s: %s: %s\n", d.Reason, d.Error, d.Body)
			close(buried)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	for i, item := range []string{"tea", "cancelled", "sold out", "unknown"} {
		if _, err := purchases.Publish(context.Background(), Purchase{ID: i, Item: item}); err != nil {
			fmt.Println(err)
			return
		}
	}
	<-retried
	<-buried
	// Unordered output:
	// tea handled
	// sold out: handled at attempt 2
	// dead letter, rejected: no such item: {"id":3,"item":"unknown"}
}

// One handler serves the readiness probe, and under a path that ends in /livez the liveness probe.
func ExampleClient_HealthHandler() {
	url, prefix, done := redistest.Example()
	defer done()
	client, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	mux := http.NewServeMux()
	mux.Handle("/readyz", client.HealthHandler())
	mux.Handle("/livez", client.HealthHandler())

	probe := func(path string) {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		fmt.Print(path, " ", w.Code, " ", w.Body)
	}
	probe("/readyz")
	probe("/livez")
	if err := client.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
	probe("/readyz")
	probe("/livez")
	// Output:
	// /readyz 200 {"healthy":true}
	// /livez 200 {"healthy":true}
	// /readyz 503 {"healthy":false,"problems":["the client is stopped or draining"]}
	// /livez 200 {"healthy":true}
}

// Where the messages of a group are, before any worker of it runs.
func ExampleClient_Depth() {
	url, prefix, done := redistest.Example()
	defer done()
	client, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	purchases, err := xstreamq.NewQueue[Purchase](client, "purchases")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for _, r := range purchases.PublishBatch(ctx, []xstreamq.Outgoing[Purchase]{
		{Body: Purchase{ID: 1, Item: "tea"}},
		{Body: Purchase{ID: 2, Item: "jam"}},
		{Body: Purchase{ID: 3, Item: "milk"}, Options: []xstreamq.PublishOption{xstreamq.WithDelay(time.Hour)}},
	}) {
		if r.Err != nil {
			fmt.Println(r.Err)
			return
		}
	}
	depth, err := client.Depth(ctx, "purchases", "") // of no group: what a new one would be given
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(depth.Backlog, "wait,", depth.Delayed, "delayed")
	_, err = client.Depth(ctx, "purchases", "billing")
	fmt.Println("no such group:", errors.Is(err, xstreamq.ErrNoGroup))
	// Output:
	// 2 wait, 1 delayed
	// no such group: true
}

// Messages can be looked at without consuming them.
func ExampleClient_Peek() {
	url, prefix, done := redistest.Example()
	defer done()
	client, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	purchases, err := xstreamq.NewQueue[Purchase](client, "purchases")
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	for i, item := range []string{"tea", "jam", "milk"} {
		if _, err := purchases.Publish(ctx, Purchase{ID: i, Item: item}, xstreamq.WithHeader("tenant", "acme")); err != nil {
			fmt.Println(err)
			return
		}
	}
	next, err := client.Peek(ctx, "purchases", "", xstreamq.PeekOptions{Count: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range next {
		fmt.Printf("%s of %s\n", m.Body, m.Header["tenant"])
	}
	// Output:
	// {"id":0,"item":"tea"} of acme
	// {"id":1,"item":"jam"} of acme
}

// Dead letters are looked at, and when their cause is gone, given to their group again.
func ExampleClient_RedriveAll() {
	url, prefix, done := redistest.Example()
	defer done()
	client, err := xstreamq.Open(url, xstreamq.Config{KeyPrefix: prefix})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	purchases, err := xstreamq.NewQueue[Purchase](client, "purchases")
	if err != nil {
		fmt.Println(err)
		return
	}
	var priced atomic.Bool
	buried, billed := make(chan struct{}, 2), make(chan Purchase, 2)
	_, err = purchases.Subscribe("billing", func(_ context.Context, m *xstreamq.Message[Purchase]) error {
		if !priced.Load() {
			return xstreamq.DeadLetter(fmt.Errorf("no price for %s", m.Body.Item))
		}
		billed <- m.Body
		return nil
	}, xstreamq.SubscribeOptions{OnDeadLetter: func(context.Context, xstreamq.DeadMessage) { buried <- struct{}{} }})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	if err := client.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for i, item := range []string{"tea", "jam"} {
		if _, err := purchases.Publish(ctx, Purchase{ID: i, Item: item}); err != nil {
			fmt.Println(err)
			return
		}
		<-buried
	}
	for d, err := range client.DeadLetters(ctx, "purchases", "billing", xstreamq.DeadFilter{Error: "no price"}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %s: %s\n", d.Reason, d.Error, d.Body)
	}
	priced.Store(true)
	result, err := client.RedriveAll(ctx, "purchases", "billing", xstreamq.RedriveAllOptions{
		Filter: xstreamq.DeadFilter{Error: "no price", JSON: map[string]string{"$.item": "jam"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(result.Redriven), "redriven, billed:", (<-billed).Item)
	// Output:
	// rejected: no price for tea: {"id":0,"item":"tea"}
	// rejected: no price for jam: {"id":1,"item":"jam"}
	// 1 redriven, billed: jam
}
