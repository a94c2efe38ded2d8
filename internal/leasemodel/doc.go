// Package leasemodel checks the lease protocol of the engine exhaustively, in a model small enough to see every state.
//
// One group with one or two messages, two workers and a sweeper in each, and a Redis whose scripts are atomic. At every step a worker may
// die and come back under a new name, the reply to any command may be lost after the command was carried out, any lease may run
// out, a consumer group may be lost, and a worker may stop in good order, also while its handler runs on. Time is no number: what could
// be over at some moment may be over at any moment. Commands that page over many messages go one message at a time here, which
// allows more orders than the engine has.
//
// Check walks every state there is, breadth first, and returns the shortest way to the first one that breaks a promise of the package
// documentation:
//
//   - P1: until it has ended a message is in exactly one place, and from every state there is a way to its end;
//   - P2: nothing is trimmed that the group has not finished with, and a success that was written ends its message;
//   - P3: a living worker whose lease never ran out holds the row of its message, and no two such workers run one message;
//   - P4: a worker that does not hold the row any more changes nothing but by success;
//   - P5: failures and lost leases are counted exactly, each in its own counter, and releases in none.
//
// The files mirror the engine: redis.go the scripts in lua/, worker.go what a worker sends and when. Left out is what has no bearing on
// who holds a message: bodies, the length of waits, Dedupe, suspects, deleted and trimmed entries, and finished messages that come
// again after a group was lost, which P1 allows.
package leasemodel
