package rsmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisurl"
)

// commandTimeout bounds a call whose context has no deadline.
const commandTimeout = 5 * time.Second

// Config is for a whole client. Its zero value is what the Node package has by default.
type Config struct {
	// Namespace goes before every key, followed by a colon. Default "rsmq". A {tag} puts all queues into one slot of a Redis
	// Cluster.
	Namespace string
	// NoNamespace means an empty namespace: keys begin with the colon.
	NoNamespace bool
	// Realtime publishes, after each send, the number of messages of the queue to a channel: see Subscribe.
	Realtime bool
}

// Client sends to and receives from queues. Safe for concurrent use.
type Client struct {
	redis    rueidis.Client
	owned    bool
	prefix   string
	realtime bool

	pinned func() string // a clock for tests: "seconds microseconds"
}

// Open connects to the Redis at a URL and returns a client that owns the connection. Its errors never show the URL's credentials.
func Open(rawURL string, cfg Config) (*Client, error) {
	opts, err := redisurl.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("rsmq: %w", err)
	}
	opts.DisableCache = true
	opts.AlwaysPipelining = true // a deadline then ends one command, not the connection that others wait on
	opts.PipelineMultiplex = -1
	opts.MaxFlushDelay = 20 * time.Microsecond
	opts.ReadBufferEachConn = 128 << 10
	opts.WriteBufferEachConn = 128 << 10
	rc, err := rueidis.NewClient(opts)
	if err != nil {
		if rc != nil {
			rc.Close()
		}
		return nil, fmt.Errorf("rsmq: cannot connect to %v: %w", opts.InitAddress, err)
	}
	c, err := New(rc, cfg)
	if err != nil {
		rc.Close()
		return nil, err
	}
	c.owned = true
	return c, nil
}

// New returns a client on a connection of the caller, which Close leaves open.
func New(rc rueidis.Client, cfg Config) (*Client, error) {
	if rc == nil {
		return nil, errors.New("rsmq: New needs a rueidis client")
	}
	if cfg.NoNamespace && cfg.Namespace != "" {
		return nil, fmt.Errorf("rsmq: Namespace is %q and NoNamespace is set; choose one", cfg.Namespace)
	}
	if cfg.Namespace == "" && !cfg.NoNamespace {
		cfg.Namespace = "rsmq"
	}
	return &Client{
		redis: rc, prefix: cfg.Namespace + ":", realtime: cfg.Realtime,
		pinned: func() string { return "" },
	}, nil
}

// Close closes the connection if Open made it.
func (c *Client) Close() {
	if c.owned {
		c.redis.Close()
	}
}

// bounded gives a context without a deadline one.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, commandTimeout)
}
