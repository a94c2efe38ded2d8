package xstreamq

import (
	"context"
	"time"

	"github.com/xstreamq/xstreamq/internal/redisconn"
	"github.com/xstreamq/xstreamq/internal/service"
)

// followEvery is how often a subscription looks whether its readers talk to the master that the sentinels name.
const followEvery = 250 * time.Millisecond

// newFollower returns the loop that takes the readers off a server that is the master no more. rueidis moves to the new one, but not
// the connections of readers: one that is frozen answers them nothing, and one that was not told yet goes on to give out messages.
func (s *subscription) newFollower() *service.Loop {
	return service.New(service.Options{
		Name: "follower", Timeout: commandTimeout, OnError: s.loopError("follower"),
		Step: func(ctx context.Context) (time.Duration, error) {
			if master := redisconn.Master(s.client.redis); master != "" {
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

// heed looks into an error: a server that is a replica means that the news of a failover may have passed a client of Open by.
func (c *Client) heed(err error) {
	if c.conns != nil && redisCode(err) == "READONLY" {
		c.conns.AskAgain(c.redis)
	}
}
