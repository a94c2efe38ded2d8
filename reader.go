package xstreamq

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/service"
	"github.com/xstreamq/xstreamq/internal/wire"
)

const (
	// readMax bounds one read.
	readMax = 1000
	// deliverySlab is how many deliveries are allocated at once.
	deliverySlab = 64
	// blockFor is how long a read waits on the server, when it can be woken; else blockShort.
	blockFor   = 5 * time.Second
	blockShort = time.Second
	// doubtFor is how long after an answer that never came the request may still be on its way, and be carried out. Strays are
	// looked for every so often meanwhile.
	doubtFor  = 30 * time.Second
	lookEvery = time.Second

	// unread asks for what nobody was given yet. pastAll asks for what this consumer holds after the last id but one that can be: nothing.
	unread  = ">"
	pastAll = "18446744073709551615-18446744073709551614"
)

// laneReader reads one lane, on a connection of its own: a blocked read holds up nobody, and can be woken.
type laneReader struct {
	s    *subscription
	lane *lane
	loop *service.Loop
	top  wire.ID   // highest id read so far
	sent time.Time // when the last read was
	seen time.Time // when Redis last noted a sign of life

	quiet  bool      // the last blocked read brought nothing: block again
	doubt  time.Time // until then Redis may carry out a read whose answer we do not see; zero = no doubt
	looked time.Time // when strays were last looked for

	mu   sync.Mutex
	conn *readConn
	stop bool
}

func (s *subscription) newReader(l *lane) *laneReader {
	r := &laneReader{s: s, lane: l}
	name := "reader"
	if l.ours {
		name = "retry reader"
	}
	r.loop = service.New(service.Options{Name: name, Step: r.step, OnError: s.loopError(name)})
	return r
}

// step waits for free slots and fills them. It asks without blocking first; a blocked read asks for one message only and
// holds no slot, so an idle queue cannot keep a busy retry stream waiting, nor the other way round.
func (r *laneReader) step(ctx context.Context) (time.Duration, error) {
	if now := time.Now(); !r.doubt.IsZero() && now.Sub(r.looked) >= lookEvery {
		if err := r.s.releaseStrays(ctx, r.lane, r.s.pool.heldIDs(r.lane)); err != nil {
			return 0, r.mend(ctx, err)
		}
		r.looked = now
		if now.After(r.doubt) {
			r.doubt = time.Time{}
		}
	}
	n := r.s.pool.reserve(r.lane, readMax, r.loop.SetWaiting)
	if n == 0 || r.stopping() {
		r.s.pool.unreserve(n)
		return blockShort, nil
	}
	var found []rueidis.RedisMessage
	var err error
	if !r.quiet {
		found, err = r.read(ctx, n, 0, unread)
	}
	if err != nil || len(found) == 0 {
		r.s.pool.unreserve(n)
		if err == nil {
			n = 0
			r.loop.SetWaiting(false) // notes progress: the next read may be a long one
			found, err = r.block(ctx)
			r.quiet = err == nil && len(found) == 0
		}
	}
	if err != nil {
		return 0, r.mend(ctx, err)
	}
	r.take(ctx, n, found)
	return 0, nil
}

// block waits for one message. It returns nothing when it was woken, or none came.
func (r *laneReader) block(ctx context.Context) ([]rueidis.RedisMessage, error) {
	conn := r.connect()
	if conn == nil || r.stopping() {
		return nil, nil
	}
	// Before 7.2 a read that brings nothing leaves no sign of life: an idle worker would look like one that is gone.
	if now := time.Now(); now.Sub(r.seen) >= blockFor/2 {
		if _, err := r.read(ctx, 1, 0, pastAll); err != nil {
			return nil, err
		}
		r.seen = now
	}
	wait := blockFor
	if conn.waker == nil || !r.doubt.IsZero() {
		wait = blockShort
	}
	return r.read(ctx, 1, wait, unread)
}

// read is one XREADGROUP. Its deadline is for a connection that carries nothing any more; ending it earlier could strand
// what Redis is just handing over.
func (r *laneReader) read(ctx context.Context, count int, block time.Duration, from string) ([]rueidis.RedisMessage, error) {
	conn := r.connect()
	if conn == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), block+commandTimeout)
	defer cancel()
	c := conn.client.B().Xreadgroup().Group(r.lane.group, r.s.consumer).Count(int64(count))
	var cmd rueidis.Completed
	if block > 0 {
		cmd = c.Block(block.Milliseconds()).Streams().Key(r.lane.keys.Source).Id(from).Build()
	} else {
		cmd = c.Streams().Key(r.lane.keys.Source).Id(from).Build()
	}
	r.sent = time.Now()
	reply, err := conn.client.Do(ctx, cmd).ToMessage()
	if rueidis.IsRedisNil(err) {
		err = nil
	}
	if err != nil {
		r.distrust(ctx, err)
		return nil, err
	}
	r.learn(ctx, conn)
	return streamEntries(reply)
}

// distrust drops the connection after an error, unless it is one of the stream: the node may not be the one to ask any more (MOVED,
// READONLY), and only a new connection finds the right one.
func (r *laneReader) distrust(ctx context.Context, err error) {
	switch redisCode(err) {
	case "", "READONLY":
		// The answer may have been lost, or the request is still on its way. Or the next master does not know what was ended.
		r.doubt, r.looked = time.Now().Add(doubtFor), time.Time{}
	case "NOGROUP", "UNBLOCKED", "WRONGTYPE":
		return
	}
	r.drop(ctx)
}

// streamEntries returns the entries of the one stream in an XREADGROUP reply, of either protocol version.
func streamEntries(reply rueidis.RedisMessage) ([]rueidis.RedisMessage, error) {
	if reply.IsNil() {
		return nil, nil
	}
	if reply.IsMap() {
		streams, err := reply.AsMap()
		if err != nil {
			return nil, err
		}
		for _, entries := range streams {
			return entries.ToArray()
		}
		return nil, nil
	}
	streams, err := reply.ToArray()
	if err != nil || len(streams) == 0 {
		return nil, err
	}
	pair, err := streams[0].ToArray()
	if err == nil && len(pair) != 2 {
		err = fmt.Errorf("xstreamq: XREADGROUP answered a stream of %d parts", len(pair))
	}
	if err != nil {
		return nil, err
	}
	return pair[1].ToArray()
}

// mend deals with an error of a read. What a step does next is up to the loop: it backs off when mend returns an error.
func (r *laneReader) mend(ctx context.Context, err error) error {
	if groupGone(err) {
		return r.s.repair(ctx, r.lane)
	}
	return err
}

// take makes deliveries of what was read and lines them up; n slots were reserved for them.
func (r *laneReader) take(ctx context.Context, n int, found []rueidis.RedisMessage) {
	var slots []delivery
	ds := make([]*delivery, 0, len(found))
	for i := range found {
		id, fields, err := splitEntry(found[i])
		if err != nil || fields == nil {
			// Gone while it was pending, and handed to us all the same: the sweep writes the tombstone.
			continue
		}
		if len(slots) == 0 {
			slots = make([]delivery, min(deliverySlab, len(found)-i))
		}
		d := &slots[0]
		slots = slots[1:]
		d.lane, d.fields = r.lane, fields
		d.entry.Decode(id, fields, r.lane.ours)
		d.ctx.parent, d.ctx.timeout = r.s.workCtx, r.s.opts.HandlerTimeout
		ds = append(ds, d)
	}
	ds = r.withoutRepeats(ds)
	ds = r.s.withoutDone(ctx, ds)
	r.s.setApart(ctx, r.lane, ds)
	r.s.pool.push(n, ds, r.sent)
}

// withoutRepeats drops what this process still handles. Ids only go back after the group was created again.
func (r *laneReader) withoutRepeats(ds []*delivery) []*delivery {
	if len(ds) == 0 {
		return ds
	}
	first, _ := wire.ParseID(ds[0].entry.ID)
	last, _ := wire.ParseID(ds[len(ds)-1].entry.ID)
	forward := r.top.Less(first)
	if r.top.Less(last) {
		r.top = last
	}
	if forward {
		return ds
	}
	held := r.s.pool.heldIDs(r.lane)
	fresh := ds[:0]
	var again []*delivery
	for _, d := range ds {
		if first := held[d.entry.ID]; first != nil {
			again = append(again, first)
		} else {
			fresh = append(fresh, d)
		}
	}
	r.s.pool.readAgain(again)
	if r.lane.ours {
		return fresh
	}
	return r.s.withoutGhosts(fresh)
}
