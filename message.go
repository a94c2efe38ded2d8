package xstreamq

import (
	"context"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// Message is one delivery, as the handler gets it.
type Message[T any] struct {
	// Body is the decoded body.
	Body T
	Delivery
}

// Delivery is everything about a delivery but its decoded body.
type Delivery struct {
	// Raw is the body as it was published, byte for byte. With the Bytes codec it shares memory with Body.
	Raw []byte
	// Header holds the application headers; nil when there are none.
	Header map[string]string
	// ID is the id of this delivery's entry. It changes with each redelivery.
	ID string
	// OriginalID is the id that Publish returned. It stays the same across redeliveries: the key for idempotent handlers.
	OriginalID string
	Queue      string
	Group      string
	// Attempt is Retries + LostLeases + 1.
	Attempt int
	// Retries counts the failures before this delivery.
	Retries int
	// LostLeases counts how often a worker vanished with this message.
	LostLeases int
	// PublishedAt is the server's time of the publish. When a foreign producer chose the id it is what that says; zero when
	// nothing says it.
	PublishedAt time.Time
}

// Handler handles one message. nil ends it; any other error is a failure, unless it is one of the verdicts RetryAfter,
// DeadLetter, Discard and Release. ctx ends, with a cause, when the lease is lost, HandlerTimeout or MaxExtension passes, or
// the drain deadline passes.
type Handler[T any] func(ctx context.Context, m *Message[T]) error

func deliveryOf(e *wire.Entry, queue, group string) Delivery {
	return Delivery{
		Raw:         e.Body,
		Header:      e.Header,
		ID:          e.ID,
		OriginalID:  e.Original,
		Queue:       queue,
		Group:       group,
		Attempt:     e.Failures + e.Lost + 1,
		Retries:     e.Failures,
		LostLeases:  e.Lost,
		PublishedAt: e.Published,
	}
}
