package redisconn

import (
	"cmp"
	"time"

	"github.com/redis/rueidis"
)

const (
	// askEvery is how often sentinels may be asked anew for the master: what is made anew takes a while.
	askEvery = 5 * time.Second
	// passOver is how long the sentinel that was listened to is not dialled then. rueidis goes to the next one at once.
	passOver = time.Second
)

// BoundSentinels sets what rueidis has defaults for with servers alone: it would wait for ever for a sentinel that is frozen.
func BoundSentinels(opts *rueidis.ClientOption) {
	dialer := &opts.Sentinel.Dialer
	dialer.Timeout = cmp.Or(dialer.Timeout, rueidis.DefaultDialTimeout)
	dialer.KeepAlive = cmp.Or(dialer.KeepAlive, rueidis.DefaultTCPKeepAlive)
}

// Master is the address of the server that a Sentinel client takes for the master now. Empty: there is no Sentinel, or it cannot
// be told from replicas that the client also talks to.
func Master(rc rueidis.Client) string {
	if rc.Mode() != rueidis.ClientModeSentinel {
		return ""
	}
	nodes := rc.Nodes()
	for addr := range nodes {
		if len(nodes) == 1 {
			return addr
		}
	}
	return ""
}

// AskAgain has a Sentinel client of these connections ask for the master again, unless it just did. It is for a server that said it
// was a replica: the news of a failover may have passed the client by, and rueidis asks the sentinels only when it hears of one, or
// when the connection to a sentinel breaks. So that one is cut, and not dialled for a moment: if it is silent, another one is asked.
func (c *Connections) AskAgain(rc rueidis.Client) {
	master := Master(rc)
	if master == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.asked) < askEvery {
		return
	}
	c.asked = time.Now()
	for conn := range c.open {
		if conn.Conn != nil && conn.addr != master {
			c.left[conn.addr] = c.asked.Add(passOver)
			conn.cut()
		}
	}
}
