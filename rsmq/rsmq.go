package rsmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisconn"
	"github.com/xstreamq/xstreamq/internal/redisurl"
)

const (
	commandTimeout = 5 * time.Second // for a call whose context has no deadline
	closeTimeout   = time.Second     // for calls under way when the connection is closed
)

// Config is for a whole client. Its zero value is what the Node package has by default.
type Config struct {
	// Namespace goes before every key, followed by a colon. Default "rsmq". On a Redis Cluster it needs a {tag}, which puts all its
	// queues into one slot; Node processes cannot use such a cluster at all.
	Namespace string
	// NoNamespace means an empty namespace: keys begin with the colon.
	NoNamespace bool
	// Realtime publishes, after each send, the number of messages of the queue to a channel: see Subscribe.
	Realtime bool
}

// Client sends to and receives from queues. Safe for concurrent use.
type Client struct {
	redis    rueidis.Client
	prefix   string
	realtime bool

	conns  *redisconn.Connections // of Open; nil for New
	closed context.Context        // ends when Close is called on a client of Open
	close  func()

	// Single calls, which may share one with others.
	sends    combiner[queueTime, string, string]
	deletes  combiner[string, string, bool]
	receives combiner[queueTime, struct{}, delivery]
	pops     combiner[queueTime, struct{}, delivery]

	pinned func() string // a clock for tests: "seconds microseconds"
}

// Open connects to the Redis at a URL (redis://, rediss://, unix://) and returns a client that owns the connection. Its errors never show the
// URL's credentials. A connection whose server is silent for some 6s is given up, with all calls that wait for it: write_timeout in the query of the
// URL, by default 5s, sets that.
func Open(rawURL string, cfg Config) (*Client, error) {
	opts, err := redisurl.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("rsmq: %w", err)
	}
	opts.DisableCache = true
	opts.AlwaysPipelining = true // a deadline then ends one command, not the connection that others wait on
	opts.PipelineMultiplex = -1
	if opts.ConnWriteTimeout == 0 {
		opts.ConnWriteTimeout = commandTimeout // all calls wait behind a dead connection; rueidis would find out after 10s
	}
	opts.MaxFlushDelay = 20 * time.Microsecond
	opts.ReadBufferEachConn = 128 << 10
	opts.WriteBufferEachConn = 128 << 10
	redisconn.BoundSentinels(&opts)
	redisconn.RefreshCluster(&opts)
	closed, end := context.WithCancel(context.Background())
	conns := redisconn.New()
	opts.DialCtxFn = conns.Keeping(opts.DialCtxFn)
	rc, err := rueidis.NewClient(opts)
	if err != nil {
		end()
		conns.Close()
		if rc != nil {
			rc.Close()
		}
		return nil, fmt.Errorf("rsmq: cannot connect to %v: %w", opts.InitAddress, err)
	}
	shut := sync.OnceFunc(func() {
		end()
		conns.Refuse()
		time.AfterFunc(closeTimeout, conns.Close)
		rc.Close() // that of a cluster only begins it
	})
	c, err := New(rc, cfg)
	if err != nil {
		shut()
		return nil, err
	}
	c.conns, c.closed, c.close = conns, closed, shut
	return c, nil
}

// New returns a client on a connection of the caller, which Close leaves open. Set AlwaysPipelining in its options, so that deadlines end
// calls and not the connection.
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
	if rc.Mode() == rueidis.ClientModeCluster && !tagged(cfg.Namespace) {
		return nil, fmt.Errorf("rsmq: the keys of a queue must lie in one slot of the cluster, so Namespace needs a {tag}: it is %q", cfg.Namespace)
	}
	c := &Client{
		redis: rc, prefix: cfg.Namespace + ":", realtime: cfg.Realtime,
		closed: context.Background(), close: func() {},
		pinned: func() string { return "" },
	}
	c.sends.serve, c.deletes.serve = c.serveSends, c.serveDeletes
	c.receives.serve = func(ctx context.Context, from queueTime, callers []struct{}) []outcome[delivery] {
		return serveDeliveries(ctx, from, len(callers), c.receive)
	}
	c.receives.abandon = c.giveBack
	c.pops.serve = func(ctx context.Context, from queueTime, callers []struct{}) []outcome[delivery] {
		return serveDeliveries(ctx, from, len(callers), c.pop)
	}
	return c, nil
}

// tagged reports that all keys of a namespace share a slot, by the rule of Redis: what is between the first { and the } after it.
func tagged(namespace string) bool {
	_, after, _ := strings.Cut(namespace, "{")
	return strings.Index(after, "}") > 0
}

// Close closes the connection if Open made it, within about a second: calls under way get that long. Later calls return ErrClosed.
func (c *Client) Close() { c.close() }
