package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
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
