// Package rsmq is a client for RSMQ, the simple message queue on Redis that the Node package of that name made known. It shares queues
// with Node processes: same keys, ids, scores, limits, errors and counters, so either side may send what the other receives.
//
//	client, err := rsmq.Open("redis://localhost:6379", rsmq.Config{})
//	err = client.CreateQueue(ctx, "orders", rsmq.QueueOptions{})
//	id, err := client.SendMessage(ctx, "orders", "hello", rsmq.SendOptions{})
//	m, ok, err := client.ReceiveMessage(ctx, "orders", rsmq.ReceiveOptions{})
//	ok, err = client.DeleteMessage(ctx, "orders", m.ID)
//
// A received message is hidden for its visibility timeout and comes again unless it is deleted. Whoever knows an id may delete or extend
// that message. Nothing limits how often it comes again, and there are no dead letters.
//
// Each operation is one script, so it happens whole or not at all, and a race with DeleteQueue leaves nothing behind. Time is that of the
// server. Every call ends with its context, or after 5s when that has no deadline. Nothing is sent twice: an error that is ErrUncertain
// says that the operation may have been carried out.
//
// This package does not use the xstreamq engine, and shares no keys with it.
package rsmq

//go:generate go run ../internal/luagen/cmd -lua lua -out lua_gen.go -package rsmq -keys keySet
