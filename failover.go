package xstreamq

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/service"
)

const (
	// followEvery is how often a subscription looks whether its readers talk to the master that the sentinels name.
	followEvery = 250 * time.Millisecond
	// askEvery is how often sentinels may be asked anew for the master.
	askEvery = 5 * time.Second
)

// master is the address of the server that a Sentinel client takes for the master now. Empty: there is no Sentinel, or it cannot
// be told from replicas that the client also talks to.
func (c *Client) master() string {
	if c.redis.Mode() != rueidis.ClientModeSentinel {
		return ""
	}
	nodes := c.redis.Nodes()
	for addr := range nodes {
		if len(nodes) == 1 {
			return addr
		}
	}
	return ""
}

// newFollower returns the loop that takes the readers off a server that is the master no more. rueidis moves to the new one, but not
// the connections of readers: one that is frozen answers them nothing, and one that was not told yet goes on to give out messages.
func (s *subscription) newFollower() *service.Loop {
	return service.New(service.Options{
		Name: "follower", Timeout: commandTimeout, OnError: s.loopError("follower"),
		Step: func(ctx context.Context) (time.Duration, error) {
			if master := s.client.master(); master != "" {
				for _, l := range s.lanes {
					l.read.follow(ctx, master)
				}
			}
			return followEvery, nil
		},
	})
}

// follow drops the reader's connection if it leads to another server than master. A read under way fails.
func (r *laneReader) follow(ctx context.Context, master string) {
	r.mu.Lock()
	elsewhere := r.conn != nil && r.conn.master != master
	r.mu.Unlock()
	if elsewhere {
		ctx, cancel := context.WithTimeout(ctx, followEvery)
		defer cancel()
		r.drop(ctx)
	}
}

// heed looks into an error. When a server says that it is a replica, the news of a failover may have passed a client of Open by, and
// rueidis asks the sentinels only when it hears of one, or when the connection to a sentinel breaks: so that one is cut.
func (c *Client) heed(err error) {
	if redisCode(err) != "READONLY" || c.conns == nil {
		return
	}
	if master := c.master(); master != "" {
		c.conns.CutOthers(master, askEvery)
	}
}
