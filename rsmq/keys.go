package rsmq

// keySet are the keys of one queue.
type keySet struct {
	Hash     string // hash: attributes, counters, bodies, and how often and since when each message was received
	Messages string // zset: message id -> ms at which it is visible
	Queues   string // set: names of all queues of the namespace
}

func (c *Client) keys(queue string) keySet {
	base := c.prefix + queue
	return keySet{Hash: base + ":Q", Messages: base, Queues: c.prefix + reserved}
}

// channel is where senders with Config.Realtime announce messages.
func (c *Client) channel(queue string) string { return c.prefix + "rt:" + queue }

// reserved is a name that no queue may have: its messages would lie in the key that lists all queues.
const reserved = "QUEUES"
