package xstreamq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redisconn"
	"github.com/xstreamq/xstreamq/internal/service"
)

// healthTimeout bounds a health check whose context sets no deadline.
const healthTimeout = 3 * time.Second

// Health is the state of a client.
type Health struct {
	// Healthy: everything below is well.
	Healthy bool `json:"healthy"`
	// Problems says what is not, one sentence each.
	Problems []string `json:"problems,omitempty"`
	// Redis is what a write that changes nothing was answered; empty when it was accepted.
	Redis string `json:"redis,omitempty"`
	// Subscriptions lists the groups of this client.
	Subscriptions []SubscriptionHealth `json:"subscriptions,omitempty"`

	stopped bool
}

// SubscriptionHealth is the state of one group in this process.
type SubscriptionHealth struct {
	Queue string `json:"queue"`
	Group string `json:"group"`
	// Ready: its workers run.
	Ready bool `json:"ready"`
	// Waiting deliveries have no handler yet, Running have one, Unsettled have an outcome that is not written yet.
	Waiting   int          `json:"waiting"`
	Running   int          `json:"running"`
	Unsettled int          `json:"unsettled"`
	Loops     []LoopHealth `json:"loops,omitempty"`
}

// LoopHealth is the state of one background loop.
type LoopHealth struct {
	Name string `json:"name"`
	// Fresh: it made progress lately.
	Fresh bool `json:"fresh"`
	// Progress is when it last did.
	Progress time.Time `json:"progress"`
	// Error is that of its last round; empty when it succeeded.
	Error string `json:"error,omitempty"`
}

// Healthy returns nil, or what is wrong: Redis cannot be reached or refuses writes, a loop has made no progress for longer
// than it may, or the client is stopped. Idle queues and busy handlers are healthy. It returns within ctx, or 3s.
func (c *Client) Healthy(ctx context.Context) error {
	h := c.Health(ctx)
	if h.Healthy {
		return nil
	}
	return errors.New("xstreamq: unhealthy: " + strings.Join(h.Problems, "; "))
}

// Health returns the details behind Healthy.
func (c *Client) Health(ctx context.Context) Health {
	h := c.look(func(st service.Status) bool { return st.Fresh })
	if h.stopped {
		h.Problems = append(h.Problems, "the client is stopped or draining")
	}
	if err := c.writable(ctx); err != nil {
		h.Redis = err.Error()
		h.Problems = append([]string{"Redis: " + h.Redis}, h.Problems...)
	}
	h.Healthy = len(h.Problems) == 0
	return h
}

// writable sends a write that can change nothing: XADD to a key that never exists, without creating it. A replica, a full
// server, and one that cannot persist all refuse it.
func (c *Client) writable(ctx context.Context) error {
	ctx, cancel := redisconn.Bound(ctx, healthTimeout)
	defer cancel()
	cmd := c.redis.B().Xadd().Key(keys.Health(c.cfg.KeyPrefix)).Nomkstream().Id("*").FieldValue().FieldValue("h", "1").Build()
	// A command that waits for a dial which another one began does not notice the end of its own context.
	answer := make(chan error, 1)
	go func() { answer <- c.redis.Do(ctx, cmd).Error() }()
	select {
	case err := <-answer:
		if rueidis.IsRedisNil(err) {
			return nil
		}
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", context.Cause(ctx))
	}
}

// look looks at this process alone; well says whether a loop is.
func (c *Client) look(well func(service.Status) bool) Health {
	c.mu.Lock()
	state := c.state
	subs := append([]*subscription(nil), c.subs...)
	c.mu.Unlock()
	h := Health{stopped: state == stopping}
	for _, s := range subs {
		sh, problems := s.health(well)
		h.Subscriptions = append(h.Subscriptions, sh)
		if state == started {
			h.Problems = append(h.Problems, problems...)
		}
	}
	h.Healthy = len(h.Problems) == 0
	return h
}

func (s *subscription) health(well func(service.Status) bool) (SubscriptionHealth, []string) {
	h := SubscriptionHealth{Queue: s.queue, Group: s.group}
	var held int
	h.Waiting, h.Running, held = s.pool.counts()
	h.Unsettled = max(0, held-h.Waiting-h.Running)
	s.mu.Lock()
	defer s.mu.Unlock()
	h.Ready = s.running && !s.halted
	if s.halted {
		return h, nil
	}
	var problems []string
	if !s.running {
		problems = append(problems, fmt.Sprintf("queue %q, group %q: not ready yet", s.queue, s.group))
	}
	for _, l := range s.loops {
		st := l.Status()
		lh := LoopHealth{Name: st.Name, Fresh: well(st), Progress: st.Progress}
		if st.Err != nil {
			lh.Error = st.Err.Error()
		}
		h.Loops = append(h.Loops, lh)
		if !lh.Fresh {
			problems = append(problems, fmt.Sprintf("queue %q, group %q: the %s made no progress for %s: %s",
				s.queue, s.group, st.Name, time.Since(st.Progress).Round(time.Second), text(st.Err)))
		}
	}
	return h, problems
}

// HealthHandler answers 200, or 503 when Healthy would return an error, with Health as JSON. A path that ends in /livez looks at
// the loops of this process alone, so that an outage of Redis need not restart every pod.
func (c *Client) HealthHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var h Health
		if strings.HasSuffix(r.URL.Path, "/livez") {
			h = c.look(func(st service.Status) bool { return st.Alive })
		} else {
			h = c.Health(r.Context())
		}
		w.Header().Set("Content-Type", "application/json")
		if !h.Healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // the prober hung up: nobody to tell
	})
}
