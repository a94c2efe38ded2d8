package xstreamq

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// readConn is a dedicated connection for blocked reads, and the means to wake one.
type readConn struct {
	client rueidis.DedicatedClient
	master string         // what was known to be the master
	known  bool           // id and waker were asked for
	waker  rueidis.Client // sends CLIENT UNBLOCK to the same node; nil = cannot be had
	id     int64
}

// connect returns the reader's connection, making one if there is none; nil when the reader is being stopped. Only the reader
// calls it. Nothing is locked meanwhile: a dial may take its time.
func (r *laneReader) connect() *readConn {
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	if conn != nil {
		return conn
	}
	master := r.s.master() // before the other: if it changes in between, the connection is dropped for nothing
	client, _ := r.s.client.redis.Dedicate()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop {
		go client.Close()
		return nil
	}
	r.conn = &readConn{client: client, master: master}
	return r.conn
}

// drop closes the reader's connection if there is one. A silent server can hold that up, but not longer than until the end of
// ctx. The connection is never given to others: taking it back, rueidis sends it commands without a deadline.
func (r *laneReader) drop(ctx context.Context) {
	r.mu.Lock()
	conn := r.conn
	r.conn = nil
	r.mu.Unlock()
	if conn == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		conn.client.Close()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// learn finds out how a blocked read on a connection can be woken. The connection has done a keyed command before: only
// that ties it to its node. No message may wait meanwhile: it would have a lease that nobody renews.
func (r *laneReader) learn(ctx context.Context, conn *readConn) {
	if conn.known {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commandTimeout)
	defer cancel()
	id, err := conn.client.Do(ctx, conn.client.B().ClientId().Build()).AsInt64()
	var waker rueidis.Client
	if err == nil {
		waker = r.s.client.nodeOf(ctx, conn.client)
	}
	// Trying it now, when there is nothing to wake, tells whether it is allowed.
	if waker != nil && unblock(ctx, waker, id) != nil {
		waker = nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	conn.known, conn.waker, conn.id = true, waker, id
}

func unblock(ctx context.Context, c rueidis.Client, id int64) error {
	return c.Do(ctx, c.B().ClientUnblock().ClientId(id).Build()).Error()
}

// nodeOf returns a client of the very node that a dedicated connection talks to, or nil if it cannot be told: an UNBLOCK sent
// to another node would wake a stranger.
func (c *Client) nodeOf(ctx context.Context, conn rueidis.DedicatedClient) rueidis.Client {
	if c.redis.Mode() == rueidis.ClientModeStandalone {
		return c.redis
	}
	info, err := conn.Do(ctx, conn.B().ClientInfo().Build()).ToString()
	if err != nil {
		return nil
	}
	for field := range strings.FieldsSeq(info) {
		if addr, ok := strings.CutPrefix(field, "laddr="); ok {
			return c.redis.Nodes()[addr]
		}
	}
	return nil
}

func (r *laneReader) stopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop
}

// halt ends the reader: no further read, and the one under way is woken, again and again, since between two reads it is not
// blocked yet. What it brings is still taken. ctx bounds the wait; then the connection is cut.
func (r *laneReader) halt(ctx context.Context) {
	r.mu.Lock()
	r.stop = true
	r.mu.Unlock()
	r.loop.Halt()
	for !r.endedWithin(ctx, clock) && ctx.Err() == nil {
		if waker, id := r.waker(); waker != nil {
			_ = unblock(ctx, waker, id) // tried again until the read has ended
		}
	}
	r.drop(ctx)
	// A read that was cut brings nothing more; one that was answered just before is still being taken.
	r.endedWithin(context.WithoutCancel(ctx), 20*clock)
}

// waker returns what can wake the read under way, or nil.
func (r *laneReader) waker() (waker rueidis.Client, id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == nil {
		return nil, 0
	}
	return r.conn.waker, r.conn.id
}

// endedWithin waits a moment for the loop to end.
func (r *laneReader) endedWithin(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return r.loop.Wait(ctx) == nil
}
