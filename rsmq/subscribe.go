package rsmq

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redisconn"
)

// A subscription connects again after retryFirst, then twice as late each time, at most retryMost.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 5 * time.Second
)

// Subscribe calls announced whenever a sender with Config.Realtime, a Node process among them, has sent to the queue: with the number of messages
// that the queue then had, hidden ones too. It takes a connection of its own, and returns when ctx ends, with
// its cause, or with ErrClosed after Close; announced is not called any more then.
//
// Nothing is announced when a hidden message becomes visible again, and what is announced while the connection is broken is lost: so
// go on polling, and take this as a reason to do it sooner. After a break it connects again by itself, and then calls announced with -1.
func (c *Client) Subscribe(ctx context.Context, queue string, announced func(messages int64)) error {
	if err := checkQueue(queue); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.closed, func() { cancel(failed("subscribe to", queue, ErrClosed, false)) })()
	s := &subscription{channel: c.channel(queue), announced: announced}
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := s.listen(ctx, c.redis)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if lasting(err) {
			return failed("subscribe to", queue, err, false)
		}
		if s.subscribed {
			wait = retryFirst
		}
		if !sleep(ctx, wait) {
			return context.Cause(ctx)
		}
	}
}

// subscription hears one channel, over one connection after the other.
type subscription struct {
	channel   string
	announced func(int64)

	subscribed bool // the latest connection was
	broken     bool // an earlier one was, so something may have been missed
}

// listen makes a connection and listens until it breaks or ctx ends.
func (s *subscription) listen(ctx context.Context, rc rueidis.Client) error {
	s.subscribed = false
	conn, err := dedicate(ctx, rc)
	if err != nil {
		return err
	}
	var mu sync.Mutex // held while announced runs
	ended := false
	tell := func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		if !ended && ctx.Err() == nil {
			s.announced(n)
		}
	}
	defer func() {
		conn.Close()
		mu.Lock()
		defer mu.Unlock()
		ended = true
	}()
	lost := conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) {
		if n, err := strconv.ParseInt(m.Message, 10, 64); err == nil {
			tell(n)
		}
	}})
	if err := subscribeTo(ctx, conn, s.channel); err != nil {
		return err
	}
	s.subscribed = true
	if s.broken {
		tell(-1)
	}
	s.broken = true
	select {
	case err = <-lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func subscribeTo(ctx context.Context, conn rueidis.DedicatedClient, channel string) error {
	ctx, cancel := redisconn.Bound(ctx, commandTimeout)
	defer cancel()
	return conn.Do(ctx, conn.B().Subscribe().Channel(channel).Build()).Error()
}

// dedicate takes a connection of its own. Making one may take longer than ctx, which does not end that.
func dedicate(ctx context.Context, rc rueidis.Client) (rueidis.DedicatedClient, error) {
	made := make(chan rueidis.DedicatedClient)
	go func() {
		conn, _ := rc.Dedicate()
		select {
		case made <- conn:
		case <-ctx.Done():
			conn.Close()
		}
	}()
	select {
	case conn := <-made:
		return conn, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
