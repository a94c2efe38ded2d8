// Package xstreamq is a reliable queue on Redis Streams: at-least-once delivery with leases that renew themselves, retries with
// backoff, and a dead-letter queue per group. Whatever moves a message is one atomic step on the server.
//
//	client, err := xstreamq.Open("redis://localhost:6379", xstreamq.Config{})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	orders, err := xstreamq.NewQueue[Order](client, "orders")
//	if err != nil {
//		return err
//	}
//	_, err = orders.Subscribe("shipping", func(ctx context.Context, m *xstreamq.Message[Order]) error {
//		return ship(ctx, m.Body) // nil ends the message, an error retries it
//	}, xstreamq.SubscribeOptions{})
//	if err != nil {
//		return err
//	}
//	if _, err := orders.Publish(ctx, Order{ID: 1}); err != nil {
//		return err
//	}
//	return client.Run(ctx) // until ctx ends; then it drains
//
// # Words
//
// A queue is a stream. A group is one subscriber service: every group of a queue gets every message. A worker is one process
// that consumes for a group; the workers of a group share its messages. A lease is the right of one worker to one message.
//
// # The life of a message
//
// Publish adds an entry to the queue's stream, or puts it into a sorted set when it has a delay. A worker reads it and with
// that holds its lease, which renews itself while the handler runs. What the handler returns decides:
//
//   - nil ends the message; so does [Discard], which counts apart.
//   - an error, a panic and a passed HandlerTimeout are failures: the message waits out its [Backoff] and is delivered again, or is a
//     dead letter once MaxRetries is used up. [RetryAfter] is a failure with its own wait.
//   - [DeadLetter] makes a dead letter at once.
//   - [Release] gives the message back and spends nothing.
//
// When the worker dies instead, its leases run out and other workers sweep up the messages: that spends MaxLostLeases. A
// message keeps its OriginalID, the id that Publish returned, through all of this.
//
// # Operating a queue
//
// [Client.Depth] counts where the messages of a group are, [Client.Peek] and [Client.DeadLetters] show them, and [Client.Redrive]
// gives dead letters to their group again. Groups and their workers are seen by [Client.Registered], [Client.Groups] and
// [Client.Consumers]; a group that is gone for good is removed by [Client.Forget]. These calls are paged, need no Start, and disturb no
// worker. The command xstreamq does the same.
//
// # Promises
//
// P1. A message whose Publish returned nil is delivered at least once to every group that exists by then. Until it is
// finished, it is for each group in exactly one place: not yet delivered, leased, delayed, on the retry stream, or a dead
// letter. A worker may die between any two commands without losing it or leaving it in two places. After Redis itself lost a
// group, what was not trimmed yet may come again, whether it was finished, waits or is dead.
//
// P2. Only a handler's success, a Discard, or you end a message: by [Client.Purge] of a dead letter, [Client.Cancel] of a delayed
// message, or [Client.Forget] of a whole group. Nothing is trimmed that some group has not finished with. Dead letters have no
// cap and no expiry.
//
// P3. While a worker lives and its handler runs, no other worker gets the message, up to MaxExtension; also while it waits in
// the process, and while its outcome is being written. When the worker dies, another one gets it within VisibilityTimeout and
// one sweep (a tenth of that, 100ms to 5s). From the second loss on it waits its backoff first.
//
// P4. A worker that lost its lease can change nothing: its failure is dropped, and its success ends the message only where
// nobody has moved it yet. Its handler's context ends with cause [ErrLeaseLost].
//
// P5. There are three budgets, and they never mix: failures spend MaxRetries, lost leases spend MaxLostLeases, releases spend
// nothing. A rolling deploy spends nothing, also for handlers that outlast the drain.
//
// P6. A dead letter says why: its reason, last error, failures, lost leases, when it died, where it was and who held it. Its
// body is what was published, byte for byte, also when it cannot be decoded.
//
// P7. Stop interrupts blocked reads at once and loses nothing that Redis was just handing over. It returns when its context ends
// and CancelGrace has passed, at the latest.
//
// P8. The package closes no client that it did not make, installs no signal handler, does not log what it returns, does not
// panic on what a message or an option holds, changes no struct of yours, and shows no password.
//
// P9. Its loops survive restarts and failovers of Redis, lost streams and groups, flushed scripts, full memory, pauses and cut
// connections. They back off with jitter, repair what is missing, and [Client.Healthy] tells the truth meanwhile.
//
// With NoVisibilityTimeout there are no leases and no retries, and P1, P2, P3 and P5 hold only as its comment says.
//
// # What is not promised
//
// Exactly-once: a worker can die after its handler succeeded and before that was written, so make handlers idempotent, with
// OriginalID as the key. Dedupe narrows the gap and cannot close it. Order: retries, lost leases and several workers break it.
// Stopping a handler that ignores its context: Go cannot. More safety than Redis has: what Redis forgets is gone.
package xstreamq

//go:generate go run ./internal/luagen/cmd -lua lua -out lua_gen.go -package xstreamq
