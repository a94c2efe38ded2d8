package xstreamq

import (
	"context"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisconn"
	"github.com/xstreamq/xstreamq/internal/service"
)

const (
	// followEvery is how often a subscription looks whether its readers talk to the master that the sentinels name.
	followEvery = 250 * time.Millisecond
	// ownerEvery is how often it asks the nodes of a cluster which of them is the master of its slot.
	ownerEvery = time.Second
	// leaveFor is how long a master that was replaced and says nothing is not dialled. By then rueidis knows the new one.
	leaveFor = 5 * time.Second
)

// newFollower returns the loop that takes the readers off a server that is the master no more, or nil where there is one server only.
// rueidis moves to the new one, but not the connections of readers: one that is frozen answers them nothing, and one that was not
// told yet goes on to give out messages.
func (s *subscription) newFollower() *service.Loop {
	var step service.Step
	switch s.client.redis.Mode() {
	case rueidis.ClientModeSentinel:
		step = s.followSentinels
	case rueidis.ClientModeCluster:
		step = s.followCluster
	default:
		return nil
	}
	return service.New(service.Options{Name: "follower", Timeout: commandTimeout, OnError: s.loopError("follower"), Step: step})
}

func (s *subscription) followSentinels(ctx context.Context) (time.Duration, error) {
	if master := redisconn.Master(s.client.redis); master != "" {
		s.follow(ctx, master)
	}
	return followEvery, nil
}

// followCluster also ends what waits for the old master, if that is silent: rueidis would let it wait for 10s.
func (s *subscription) followCluster(ctx context.Context) (time.Duration, error) {
	owner := redisconn.Owner(ctx, s.client.redis, s.queueLane.keys.Source)
	if owner == "" {
		return ownerEvery, nil
	}
	former := ""
	if old := s.owner.Swap(&owner); old != nil {
		former = *old
	}
	if former != "" && former != owner && s.client.conns != nil && redisconn.Silent(ctx, s.client.redis, former) {
		s.client.conns.Leave(former, leaveFor)
	}
	s.follow(ctx, owner)
	return ownerEvery, nil
}

// master is where readers should read now, as far as it is known.
func (s *subscription) master() string {
	if owner := s.owner.Load(); owner != nil {
		return *owner
	}
	return redisconn.Master(s.client.redis)
}

func (s *subscription) follow(ctx context.Context, master string) {
	for _, l := range s.lanes {
		l.read.follow(ctx, master)
	}
}

// follow drops the reader's connection if it leads to another server than master. A read under way fails.
func (r *laneReader) follow(ctx context.Context, master string) {
	r.mu.Lock()
	if r.conn != nil && r.conn.master == "" {
		r.conn.master = master // it was not known yet when the connection was made
	}
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
