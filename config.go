package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// Values of MaxRetries and MaxLostLeases.
const (
	// NoRetries: the first failure (or lost lease) makes a dead letter.
	NoRetries = -1
	// RetryForever: the budget never ends.
	RetryForever = math.MaxInt
)

// StartFrom says where a group begins that does not exist yet. An existing group goes on where it is.
type StartFrom string

const (
	// Beginning delivers what is in the queue already. The default.
	Beginning StartFrom = "0"
	// Now delivers only what is published after the group was created.
	Now StartFrom = "$"
)

// Config is for a whole client. Its zero value works.
type Config struct {
	// KeyPrefix goes before every key. At most 64 characters of A-Z a-z 0-9 _ . : @ -. Default none.
	KeyPrefix string
	// Logger gets warnings and errors of the engine, rate-limited, and panics of handlers. What handlers return is not logged:
	// the Observer is told. Default: nothing is logged.
	Logger *slog.Logger
	// Observer is told what happens. Default none.
	Observer Observer
	// ConsumerName is how this process shows in Redis; a random suffix makes it unique. Default: host name and pid.
	ConsumerName string
	// DrainTimeout is how long Run waits for handlers, and Stop when its context has no deadline. Default 25s: Kubernetes
	// kills after 30. Negative is an error.
	DrainTimeout time.Duration
	// CancelGrace is the most that Stop takes after the drain deadline: handlers get two thirds of it once their contexts
	// were cancelled, and the rest is for the last writes to Redis. Default 1s. Negative is an error.
	CancelGrace time.Duration
	// CompactEvery is how often finished entries are trimmed. Default 5s. Negative: never.
	CompactEvery time.Duration
	// Retain keeps finished entries for this long. Default 0: not at all. Negative: for ever.
	Retain time.Duration
	// MaxBodySize is the largest body that Publish takes, in bytes. Default 1 MiB. Negative is an error.
	MaxBodySize int
}

const defaultMaxBody = 1 << 20

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.ConsumerName == "" {
		c.ConsumerName = defaultConsumer()
	}
	setDefault(&c.DrainTimeout, 25*time.Second)
	setDefault(&c.CancelGrace, time.Second)
	setDefault(&c.CompactEvery, 5*time.Second)
	setDefault(&c.MaxBodySize, defaultMaxBody)
	return c
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// defaultConsumer is made of host and pid, with whatever may not be in a name replaced.
func defaultConsumer() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	clean := strings.Map(func(r rune) rune {
		if keys.Bad(string(r), 4) != "" {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("%.80s-%d", clean, os.Getpid())
}

// maxConsumer leaves room for the suffixes that make a consumer name.
const maxConsumer = 120

func (c Config) validate() error {
	var errs []error
	if bad := keys.Bad(c.KeyPrefix, keys.MaxPrefix); bad != "" {
		errs = append(errs, fmt.Errorf("%w: KeyPrefix %.80q %s", ErrInvalidName, c.KeyPrefix, bad))
	}
	if bad := keys.Bad(c.ConsumerName, maxConsumer); bad != "" {
		errs = append(errs, fmt.Errorf("%w: ConsumerName %.80q %s", ErrInvalidName, c.ConsumerName, bad))
	}
	errs = append(errs, notNegative("DrainTimeout", c.DrainTimeout), notNegative("CancelGrace", c.CancelGrace))
	if c.MaxBodySize < 0 {
		errs = append(errs, errors.New("MaxBodySize must not be negative"))
	}
	return configError("Config", errs)
}

func notNegative(name string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("%s must not be negative", name)
	}
	return nil
}

func configError(what string, errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrInvalidConfig, what, err)
	}
	return nil
}

// checkName refuses a name that may not go into a key. kind is "queue" or "group".
func checkName(kind, name string) error {
	bad := keys.Bad(name, keys.MaxName)
	if name == "" {
		bad = "is empty"
	}
	if bad != "" {
		return fmt.Errorf("%w: %s name %.200q %s", ErrInvalidName, kind, name, bad)
	}
	return nil
}

// SubscribeOptions are for one group in this process. The zero value works: it retries, keeps leases, and drops nothing.
type SubscribeOptions struct {
	// Concurrency is how many handlers run at once. Default 10. Negative is an error.
	Concurrency int
	// Prefetch is how many messages more are read ahead. Default: as many as Concurrency. Negative: none.
	Prefetch int
	// VisibilityTimeout is the length of a lease, and so how long a crashed worker's messages wait. It is renewed while the
	// handler runs. Default 30s, at least 100ms. Negative is an error.
	VisibilityTimeout time.Duration
	// NoVisibilityTimeout turns leases and retries off: failures and crashes stay pending for ever, and compaction stops
	// there. Prefetch is none. For handlers that must never run twice, with somebody looking after what stays.
	NoVisibilityTimeout bool
	// MaxExtension is how long a lease is renewed, from the start of the handler; then its context ends with ErrMaxExtension, and
	// the message moves on. Default 1h, or HandlerTimeout if that is longer. Negative: never renewed once the handler runs.
	MaxExtension time.Duration
	// HandlerTimeout ends a handler's context with ErrHandlerTimeout; what it then returns counts as a failure. Default 0:
	// none. Negative is an error.
	HandlerTimeout time.Duration
	// MaxRetries is how many failures are retried; one more makes a dead letter. Default 5. NoRetries, RetryForever.
	MaxRetries int
	// MaxLostLeases is the same for lost leases: a worker that vanished, or a handler that MaxExtension gave up on.
	// Default 5. NoRetries, RetryForever.
	MaxLostLeases int
	// Backoff is the wait before a retry. Default: 1s, doubling, 5m at most.
	Backoff Backoff
	// Dedupe remembers for this long which messages were handled, and skips them when they come again. Costs about 110
	// bytes of Redis memory per message. Default 0: off. Negative is an error.
	Dedupe time.Duration
	// StartFrom is where a new group begins. Default Beginning.
	StartFrom StartFrom
	// RetryMaxLen is a length of the retry stream at which it takes no more: the messages then stay where they are. Nothing is
	// ever trimmed. In messages. Default 0: none. Negative is an error.
	RetryMaxLen int
	// OnDeadLetter is called after this process made a dead letter, best effort: not when it dies right after, and not for those that
	// come while 8,192 are waiting already. One call at a time; ctx ends after 30s, or when Stop does.
	OnDeadLetter func(ctx context.Context, d DeadMessage)
	// Middleware wraps the handler.
	Middleware []Middleware
}

const minVisibility = 100 * time.Millisecond

func (o SubscribeOptions) withDefaults() SubscribeOptions {
	setDefault(&o.Concurrency, 10)
	setDefault(&o.Prefetch, o.Concurrency)
	if o.Prefetch < 0 || o.NoVisibilityTimeout {
		o.Prefetch = 0
	}
	setDefault(&o.VisibilityTimeout, 30*time.Second)
	setDefault(&o.MaxExtension, max(time.Hour, o.HandlerTimeout))
	setDefault(&o.MaxRetries, 5)
	setDefault(&o.MaxLostLeases, 5)
	setDefault(&o.StartFrom, Beginning)
	o.Backoff = o.Backoff.withDefaults()
	o.Middleware = slices.Clone(o.Middleware)
	return o
}

func (o SubscribeOptions) validate(queue, group string) error {
	errs := []error{
		notNegative("HandlerTimeout", o.HandlerTimeout), notNegative("Dedupe", o.Dedupe), o.Backoff.validate(),
	}
	check := func(bad bool, what string) {
		if bad {
			errs = append(errs, errors.New(what))
		}
	}
	check(o.Concurrency < 0, "Concurrency must not be negative")
	check(o.VisibilityTimeout < minVisibility, "VisibilityTimeout must be at least 100ms")
	check(o.Dedupe > 0 && o.Dedupe < time.Millisecond, "Dedupe must be at least 1ms")
	check(o.MaxExtension >= 0 && o.HandlerTimeout > o.MaxExtension, "HandlerTimeout must not be longer than MaxExtension")
	check(o.MaxRetries < NoRetries, "MaxRetries must be NoRetries, RetryForever, or more than zero")
	check(o.MaxLostLeases < NoRetries, "MaxLostLeases must be NoRetries, RetryForever, or more than zero")
	check(o.RetryMaxLen < 0, "RetryMaxLen must not be negative")
	check(o.StartFrom != Beginning && o.StartFrom != Now, "StartFrom must be Beginning or Now")
	check(slices.ContainsFunc(o.Middleware, func(m Middleware) bool { return m == nil }), "Middleware must not hold nil")
	return configError(fmt.Sprintf("SubscribeOptions of queue %q, group %q", queue, group), errs)
}

// budget is a limit as the scripts take it: -1 = without end.
func budget(n int) int64 {
	switch n {
	case NoRetries:
		return 0
	case RetryForever:
		return -1
	}
	return int64(n)
}
