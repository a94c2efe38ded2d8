// Package oracle judges a load test. It reads the journal of the handlers, the producer's outcomes and what is in Redis,
// and says whether the promises were kept. It goes by docs/contract.md, with code of its own, and knows neither the
// library nor its Redis client.
package oracle

import "github.com/xstreamq/xstreamq/loadtest/internal/message"

// Keys are the keys of one queue.
type Keys struct {
	// Prefix goes before every key.
	Prefix string
	// Queue is the queue's name.
	Queue string
}

func (k Keys) stream() string           { return k.Prefix + "{" + k.Queue + "}" }
func (k Keys) scheduled() string        { return k.stream() + ".delayed" }
func (k Keys) of(group int) string      { return k.stream() + "." + message.Group(group) }
func (k Keys) retry(group int) string   { return k.of(group) + ".retry" }
func (k Keys) delayed(group int) string { return k.of(group) + ".delayed" }
func (k Keys) dead(group int) string    { return k.of(group) + ".dlq" }

// All returns every key that a queue with so many groups may have.
func (k Keys) All(groups int) []string {
	all := []string{k.stream(), k.scheduled(), k.Prefix + "xstreamq:registry"}
	for g := range groups {
		all = append(all, k.retry(g), k.delayed(g), k.dead(g), k.of(g)+".done",
			k.stream()+":lock:reclaim:"+message.Group(g), k.stream()+":lock:reclaim-retry:"+message.Group(g))
	}
	return all
}
