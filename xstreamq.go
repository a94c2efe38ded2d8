package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisconn"
	"github.com/xstreamq/xstreamq/internal/redisurl"
)

// Bounds of single commands and callbacks. The caller's context may end earlier.
const (
	commandTimeout  = 5 * time.Second
	startTimeout    = 10 * time.Second
	callbackTimeout = 30 * time.Second
	closeTimeout    = time.Second // for commands under way when the connection is closed

	// maxDedicated is no limit in practice. A subscription has two; one that waits for its own would stand still without a word.
	maxDedicated = 1 << 20
)

// Client is one process's connection to its queues, made by Open or New. It publishes from the moment it exists, and consumes
// between Start and Stop. All methods are safe for concurrent use.
type Client struct {
	redis rueidis.Client
	conns *redisconn.Connections // of redis if Open made it, else nil
	cfg   Config
	log   *limitedLog
	bound *deadlines

	mu      sync.Mutex
	state   clientState
	base    context.Context    // of the handlers; set by Start
	abort   context.CancelFunc // ends a Start that is under way
	subs    []*subscription
	stopped chan struct{} // closed when Stop has done its work
	stopErr error
	closing sync.Once
	warned  atomic.Bool
	closed  atomic.Bool // the connection is ours, and closed
}

type clientState uint8

const (
	created clientState = iota
	starting
	started
	stopping
)

// Open connects to the Redis at a URL (redis://, rediss://, unix://, with the query parameters of rueidis.ParseURL) and returns a
// client that owns the connection: Close closes it. The connection is set up for a queue: one pipelined connection that
// gathers concurrent publishes for 20 µs, no client-side caching, small buffers.
//
// Errors never show the URL's credentials.
func Open(rawURL string, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	opts, err := redisurl.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	return connect(opts, cfg)
}

// OpenWith is Open for connection options of the caller's own, such as TLS certificates, credentials or Sentinel. What Open sets up for
// a queue is set up here as well, whatever opts say of it. ReplicaOnly and SendToReplicas are ErrInvalidConfig: a queue is read
// where it is written.
func OpenWith(opts rueidis.ClientOption, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if opts.ReplicaOnly || opts.SendToReplicas != nil {
		return nil, fmt.Errorf("%w: a queue is read where it is written, so ReplicaOnly and SendToReplicas cannot be set", ErrInvalidConfig)
	}
	return connect(opts, cfg)
}

// connect makes a client with a connection of its own. cfg has its defaults and is valid.
func connect(opts rueidis.ClientOption, cfg Config) (*Client, error) {
	opts.InitAddress = slices.Clone(opts.InitAddress) // ShuffleInit would shuffle the caller's
	opts.DisableCache = true
	opts.DisableAutoPipelining = false
	opts.AlwaysPipelining = true // a deadline then ends one command, not the connection that others wait on
	opts.PipelineMultiplex = -1
	opts.MaxFlushDelay = 20 * time.Microsecond
	opts.ReadBufferEachConn = 128 << 10
	opts.WriteBufferEachConn = 128 << 10
	opts.BlockingPoolSize = maxDedicated
	redisconn.BoundSentinels(&opts)
	redisconn.RefreshCluster(&opts)
	conns := redisconn.New()
	opts.DialCtxFn = conns.Keeping(dialOf(&opts))
	rc, err := rueidis.NewClient(opts)
	if err != nil {
		if rc != nil {
			rc.Close()
		}
		conns.Close()
		return nil, fmt.Errorf("xstreamq: cannot connect to %v: %w", opts.InitAddress, err)
	}
	c := newClient(rc, cfg)
	c.conns = conns
	return c, nil
}

// New returns a client on a connection of the caller, which Close and Stop leave open. Set DisableCache in its options when
// its user may not run CLIENT TRACKING, and AlwaysPipelining so that deadlines end commands and not connections. On a Cluster set
// ClusterOption.ShardsRefreshInterval, or a master that is frozen and replaced is waited for until rueidis notices, after 11s.
func New(rc rueidis.Client, cfg Config) (*Client, error) {
	if rc == nil {
		return nil, fmt.Errorf("%w: New needs a rueidis client", ErrInvalidConfig)
	}
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return newClient(rc, cfg), nil
}

func newClient(rc rueidis.Client, cfg Config) *Client {
	return &Client{
		redis:   rc,
		cfg:     cfg,
		log:     newLimitedLog(cfg.Logger),
		bound:   &deadlines{},
		stopped: make(chan struct{}),
	}
}

// Start begins to consume: it returns nil once every group exists and its workers run. While Redis is down or loading it tries
// again, until ctx ends or, without a deadline, for 10s; then it returns what is wrong, nothing runs, and it may be called
// again. What waiting cannot cure, such as a missing permission, is returned at once.
//
// The end of ctx afterwards stops nothing: call Stop, or use Run. Handlers see the values of ctx.
func (c *Client) Start(ctx context.Context) error {
	base := context.WithoutCancel(ctx)
	ctx, cancel := redisconn.Bound(ctx, startTimeout)
	defer cancel()
	c.mu.Lock()
	switch c.state {
	case starting, started:
		c.mu.Unlock()
		return ErrStarted
	case stopping:
		c.mu.Unlock()
		return ErrStopped
	case created:
	}
	c.state = starting
	c.base = base
	c.abort = cancel
	subs := append([]*subscription(nil), c.subs...)
	c.mu.Unlock()

	err := prepareAll(ctx, subs)
	if err == nil {
		c.warnOnce(ctx)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == stopping {
		return ErrStopped
	}
	if err != nil {
		c.state = created
		return fmt.Errorf("xstreamq: start: %w", err)
	}
	c.state = started
	// Those that were added meanwhile are brought up like those added later.
	for _, s := range c.subs {
		s.launch(c.base)
	}
	return nil
}

func prepareAll(ctx context.Context, subs []*subscription) error {
	for _, s := range subs {
		if err := s.prepareUntil(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Run starts, waits for the end of ctx, and stops within Config.DrainTimeout. It returns when every handler has returned,
// or with a *DrainError. The end of ctx itself is no error.
func (c *Client) Run(ctx context.Context) error {
	if err := c.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	select {
	case <-ctx.Done():
	case <-c.stopped: // somebody else called Stop
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.DrainTimeout)
	defer cancel()
	return c.Stop(drain)
}

// Stop drains: reading ends at once, messages that no handler has begun go back for other workers, handlers get until ctx
// ends (Config.DrainTimeout without a deadline). Then their contexts are cancelled, with cause ErrDraining, and
// Config.CancelGrace later at the latest Stop returns, whatever Redis or the handlers do. Nothing is lost and no budget is
// spent.
//
// It returns a *DrainError when handlers were left behind. It may be called before Start and more than once: later
// calls wait for the first. Called by a handler with its own context it only begins the drain.
func (c *Client) Stop(ctx context.Context) error {
	if fromHandler(ctx, c) {
		bg, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.DrainTimeout)
		if !c.beginStop(bg, cancel) {
			cancel()
		}
		return nil
	}
	ctx, cancel := redisconn.Bound(ctx, c.cfg.DrainTimeout)
	defer cancel()
	if c.beginStop(ctx, func() {}) {
		<-c.stopped // it ends by itself: by the end of ctx and CancelGrace
		return c.stopErr
	}
	limit, cancel := graceAfter(ctx, c.cfg.CancelGrace)
	defer cancel()
	select {
	case <-c.stopped:
		return c.stopErr
	case <-limit.Done():
		return fmt.Errorf("xstreamq: an earlier call of Stop still drains: %w", context.DeadlineExceeded)
	}
}

// beginStop starts the drain in its own goroutine, which Stop waits for, unless it was begun before.
func (c *Client) beginStop(ctx context.Context, then func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == stopping {
		return false
	}
	c.state = stopping
	if c.abort != nil {
		c.abort()
	}
	subs := append([]*subscription(nil), c.subs...)
	go func() {
		defer then()
		c.stopErr = stopAll(ctx, subs)
		close(c.stopped)
	}()
	return true
}

// stopAll stops subscriptions side by side, and adds up what they left behind.
func stopAll(ctx context.Context, subs []*subscription) error {
	errs := make([]error, len(subs))
	var wg sync.WaitGroup
	for i, s := range subs {
		wg.Go(func() { errs[i] = s.stop(ctx) })
	}
	wg.Wait()
	return joinDrain(errs)
}

func joinDrain(errs []error) error {
	total := DrainError{}
	var rest []error
	for _, err := range errs {
		var d *DrainError
		if errors.As(err, &d) {
			total.Handlers += d.Handlers
			err = d.Err
		}
		rest = append(rest, err)
	}
	total.Err = errors.Join(rest...)
	if total.Handlers == 0 {
		return total.Err
	}
	return &total
}

// Close stops, as Stop does with Config.DrainTimeout, returns what Stop returns, and closes the connection if Open made it.
// Safe more than once. Publish then returns ErrStopped on a connection that Open made.
func (c *Client) Close() error {
	err := c.Stop(context.Background())
	c.closing.Do(func() {
		if c.conns == nil {
			return
		}
		c.closed.Store(true)
		cut := time.AfterFunc(closeTimeout, c.conns.Close)
		defer cut.Stop()
		c.redis.Close()
		c.conns.Close()
	})
	return err
}

type clientKey struct{}

func fromHandler(ctx context.Context, c *Client) bool {
	return ctx.Value(clientKey{}) == c
}
