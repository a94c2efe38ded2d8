package xstreamq

import (
	"context"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// readConn is a dedicated connection for blocked reads, and the means to wake one.
type readConn struct {
	client  rueidis.DedicatedClient
	release func()
	known   bool           // id and waker were asked for
	waker   rueidis.Client // sends CLIENT UNBLOCK to the same node; nil = cannot be had
	id      int64
}

// connect returns the reader's connection, making one if there is none; nil when the reader is being stopped. Only the reader
// calls it. Nothing is locked meanwhile: a dial may take its time.
func (r *laneReader) connect() *readConn {
	if r.conn != nil {
		return r.conn
	}
	client, release := r.s.client.redis.Dedicate()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop {
		client.Close()
		return nil
	}
	r.conn = &readConn{client: client, release: release}
	return r.conn
}

// drop closes a connection whose state is not known.
func (r *laneReader) drop() {
	r.mu.Lock()
	conn := r.conn
	r.conn = nil
	r.mu.Unlock()
	if conn != nil {
		conn.client.Close()
	}
}

// learn finds out how a blocked read on a connection can be woken. The connection has done a keyed command before: only
// that ties it to its node.
func (r *laneReader) learn(ctx context.Context, conn *readConn) {
	if conn.known {
		return
	}
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
// blocked yet. What it brings is still taken. ctx bounds the wait; then the connection is cut. It goes back to others only
// when the last UNBLOCK was answered: a late one would wake a stranger.
func (r *laneReader) halt(ctx context.Context) {
	r.mu.Lock()
	r.stop = true
	r.mu.Unlock()
	r.loop.Halt()
	answered := true
	for !r.endedWithin(ctx, clock) {
		if ctx.Err() != nil {
			answered = false
			break
		}
		r.mu.Lock()
		conn := r.conn
		r.mu.Unlock()
		if conn != nil && conn.waker != nil {
			answered = unblock(ctx, conn.waker, conn.id) == nil
		}
	}
	if !answered {
		r.drop()
		return
	}
	r.mu.Lock()
	conn := r.conn
	r.conn = nil
	r.mu.Unlock()
	if conn != nil {
		conn.release()
	}
}

// endedWithin waits a moment for the loop to end.
func (r *laneReader) endedWithin(ctx context.Context, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return r.loop.Wait(ctx) == nil
}
