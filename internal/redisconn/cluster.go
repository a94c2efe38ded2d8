package redisconn

import (
	"cmp"
	"context"
	"time"

	"github.com/redis/rueidis"
)

const (
	// refreshEvery is how often a Cluster client looks which node has which slots. rueidis by itself looks when an error tells it to, and
	// a node that is frozen tells nothing.
	refreshEvery = 2 * time.Second
	// answerWithin is how long one node is waited for.
	answerWithin = 500 * time.Millisecond
)

// RefreshCluster sets how often a Cluster client looks at the slots, unless opts say so. Other clients do nothing with it.
func RefreshCluster(opts *rueidis.ClientOption) {
	opts.ClusterOption.ShardsRefreshInterval = cmp.Or(opts.ClusterOption.ShardsRefreshInterval, refreshEvery)
}

// Owner asks the nodes of a Cluster client, one after the other, which of them is the master of a key's slot. Empty: none says so, or
// it is one that the client does not know.
func Owner(ctx context.Context, rc rueidis.Client, key string) string {
	nodes := rc.Nodes()
	for addr, node := range nodes {
		if ctx.Err() != nil {
			return ""
		}
		// A write, or replicas would answer; it acknowledges what cannot be.
		err := ask(ctx, node, node.B().Xack().Key(key).Group("-").Id("0-0").Build())
		if err == nil {
			return addr
		}
		if told, ok := rueidis.IsRedisErr(err); ok {
			if master, moved := told.IsMoved(); moved && nodes[master] != nil {
				return master
			}
		}
	}
	return ""
}

// Silent reports that a node of a Cluster client does not answer, or is none of its nodes any more.
func Silent(ctx context.Context, rc rueidis.Client, addr string) bool {
	node := rc.Nodes()[addr]
	if node == nil {
		return true
	}
	err := ask(ctx, node, node.B().Ping().Build())
	_, answered := rueidis.IsRedisErr(err)
	return err != nil && !answered
}

func ask(ctx context.Context, node rueidis.Client, cmd rueidis.Completed) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	_, err := Call(ctx, answerWithin, func(ctx context.Context) (rueidis.RedisMessage, error) {
		return node.Do(ctx, cmd).ToMessage()
	})
	return err
}
