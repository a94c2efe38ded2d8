package xstreamq

import (
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// delivery is one message in this process, from its read until its outcome is written.
type delivery struct {
	entry  wire.Entry
	fields []rueidis.RedisMessage // as read, for a settle that finds the entry gone
	lane   *lane
	ctx    handlerContext

	outcome Outcome // of an ack that is on its way

	// Guarded by pool.mu.
	state   deliveryState
	lost    bool // Redis said that another has it
	gone    bool // its entry was deleted: the lease cannot be renewed
	final   bool // MaxExtension passed: not renewed any more
	alone   bool // a suspect that has begun, and keeps the others waiting
	twice   bool // read again while it was held: its group had been lost
	read    time.Time
	renewed time.Time
	started time.Time
	age     time.Duration // of its lease, at most, when its turn came
	links   [2]link       // in the held list and in the waiting list
}

type deliveryState uint8

const (
	unstarted deliveryState = iota // read, no handler yet
	running                        // in its handler
	settling                       // has a verdict that is not written yet
	ended                          // not ours any more
)

const (
	byLease = iota // all of this process, oldest lease first
	byTurn         // those without a handler yet, in order
)

type link struct{ prev, next *delivery }

// list is a doubly linked list through deliveries.
type list struct {
	which       int
	first, last *delivery
	len         int
}

func (l *list) push(d *delivery) {
	d.links[l.which] = link{prev: l.last}
	if l.last != nil {
		l.last.links[l.which].next = d
	} else {
		l.first = d
	}
	l.last = d
	l.len++
}

func (l *list) remove(d *delivery) {
	k := d.links[l.which]
	if k.prev != nil {
		k.prev.links[l.which].next = k.next
	} else {
		l.first = k.next
	}
	if k.next != nil {
		k.next.links[l.which].prev = k.prev
	} else {
		l.last = k.prev
	}
	d.links[l.which] = link{}
	l.len--
}

// pool holds the deliveries of a subscription, hands them to its workers, and tells the readers how many more it takes.
type pool struct {
	concurrency int
	prefetch    int
	unsettled   int // deliveries with an unwritten verdict at which reading pauses

	mu       sync.Mutex
	room     sync.Cond // a reader may read
	work     sync.Cond // a worker may take one, or must go
	held     list
	turn     list
	suspects list        // also waiting, for their turn one at a time
	suspect  bool        // one of them runs
	repeats  []*delivery // read again while they were held, and not held any more
	running  int
	reserved int // slots of a read that is under way
	closed   bool
	idle     chan struct{} // closed when nothing runs any more; made by whenIdle
}

func newPool(concurrency, prefetch int) *pool {
	p := &pool{concurrency: concurrency, prefetch: prefetch, unsettled: max(1000, 4*(concurrency+prefetch))}
	p.room.L, p.work.L = &p.mu, &p.mu
	p.held.which, p.turn.which, p.suspects.which = byLease, byTurn, byTurn
	return p
}

// waiting is how many have no handler yet.
func (p *pool) waiting() int { return p.turn.len + p.suspects.len }

// line is where a delivery waits.
func (p *pool) line(d *delivery) *list {
	if d.suspect() {
		return &p.suspects
	}
	return &p.turn
}

// free is how many more may be read. It asks for half of the read-ahead to be used up first: small reads cost the server most.
// Suspects do not count, since they wait for each other and not for a worker.
func (p *pool) free() int {
	if p.turn.len > p.prefetch/2 || p.held.len > p.unsettled {
		return 0
	}
	return p.concurrency + p.prefetch - p.turn.len - p.running - p.reserved
}

// freeFor is free for a lane: the retry stream, where suspects come from, brings no more while enough of them wait.
func (p *pool) freeFor(l *lane) int {
	if l.ours && p.suspects.len >= p.concurrency+p.prefetch {
		return 0
	}
	return p.free()
}

// reserve waits until there is room, and takes up to limit slots for a read. 0 means that the pool is closed.
func (p *pool) reserve(l *lane, limit int, blocked func(bool)) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && p.freeFor(l) <= 0 {
		blocked(true)
		defer blocked(false)
	}
	for !p.closed && p.freeFor(l) <= 0 {
		p.room.Wait()
	}
	if p.closed {
		return 0
	}
	n := min(p.freeFor(l), limit)
	p.reserved += n
	return n
}

// unreserve gives back the slots of a read that brought nothing.
func (p *pool) unreserve(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reserved -= n
	p.room.Broadcast()
}

// push takes what a read brought, and gives back its slots. The leases may be as old as the read: this process may have stood
// still since.
func (p *pool) push(reserved int, ds []*delivery, sent time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.reserved -= reserved
	for _, d := range ds {
		d.read, d.renewed = now, sent
		p.held.push(d)
		p.line(d).push(d)
	}
	if len(ds) < reserved {
		p.room.Broadcast()
	}
	if len(ds) >= p.concurrency {
		p.work.Broadcast()
		return
	}
	for range ds {
		p.work.Signal()
	}
}

// next ends the turn of the worker's last delivery and waits for another one. nil means that the worker must go.
func (p *pool) next(last *delivery) *delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	if last != nil {
		p.left()
	}
	for !p.closed && p.head() == nil {
		p.work.Wait()
	}
	if p.closed {
		return nil
	}
	d := p.head()
	p.line(d).remove(d)
	p.running++
	if d.suspect() {
		d.alone, p.suspect = true, true
	}
	d.state, d.started = running, time.Now()
	d.age = d.started.Sub(d.renewed)
	d.ctx.start = d.started
	return d
}

// head is the delivery whose turn it is: a suspect if none runs.
func (p *pool) head() *delivery {
	if p.suspects.len > 0 && !p.suspect {
		return p.suspects.first
	}
	return p.turn.first
}

// left counts one running delivery less. Called with mu held.
func (p *pool) left() {
	p.running--
	if p.running == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
	if p.free() > 0 {
		p.room.Broadcast()
	}
}

// leave ends the turn of a worker that will not ask for another delivery.
func (p *pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left()
}

// nextSuspect lets another suspect begin, if a delivery was the one that kept them waiting. That comes when its outcome is
// written, not when its handler returns: else the next one could take the process down before, and the innocent were charged.
func (p *pool) nextSuspect(d *delivery) {
	if d.alone {
		d.alone, p.suspect = false, false
		p.work.Signal()
	}
}

// parked notes that the outcome of a delivery cannot be written now.
func (p *pool) parked(d *delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextSuspect(d)
}

// hold takes a delivery that needs no handler, until its outcome is written.
func (p *pool) hold(d *delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.state = settling
	d.read = time.Now()
	d.renewed = d.read
	p.held.push(d)
}

// judged marks a delivery as having its verdict; lost says whether its lease is.
func (p *pool) judged(d *delivery) (lost bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.state <= running {
		d.state = settling
	}
	return d.lost
}

// forget drops deliveries whose outcome is written, or that are not ours any more.
func (p *pool) forget(ds ...*delivery) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, d := range ds {
		p.drop(d)
	}
	if p.free() > 0 {
		p.room.Broadcast()
	}
}

func (p *pool) drop(d *delivery) {
	if d.state == ended {
		return
	}
	if d.state == unstarted {
		p.line(d).remove(d)
	}
	d.state = ended
	p.held.remove(d)
	p.nextSuspect(d)
	if d.twice {
		p.repeats = append(p.repeats, d)
	}
	// The read that brought it shares one array: a slow neighbour must not keep its body in memory.
	d.fields, d.entry.Body, d.entry.Header = nil, nil, nil
}

// close lets no delivery start any more, and wakes readers and workers.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.room.Broadcast()
	p.work.Broadcast()
}

// unstarted takes those deliveries out of the line that were read before a time. They stay held until forgotten.
func (p *pool) unstarted(before time.Time) []*delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*delivery
	for _, line := range []*list{&p.turn, &p.suspects} {
		for d := line.first; d != nil; {
			next := d.links[byTurn].next
			if d.read.Before(before) {
				line.remove(d)
				d.state = settling
				out = append(out, d)
			}
			d = next
		}
	}
	if p.free() > 0 {
		p.room.Broadcast()
	}
	return out
}

// whenIdle returns a channel that is closed when no handler runs.
func (p *pool) whenIdle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := make(chan struct{})
	if p.running == 0 {
		close(c)
		return c
	}
	if p.idle == nil {
		p.idle = c
	}
	return p.idle
}

// heldIDs returns the ids of a lane's deliveries in this process.
func (p *pool) heldIDs(l *lane) map[string]*delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	ids := make(map[string]*delivery, p.held.len)
	for d := p.held.first; d != nil; d = d.links[byLease].next {
		if d.lane == l {
			ids[d.entry.ID] = d
		}
	}
	return ids
}

// all returns everything that is held.
func (p *pool) all() []*delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]*delivery, 0, p.held.len)
	for d := p.held.first; d != nil; d = d.links[byLease].next {
		out = append(out, d)
	}
	return out
}

// stillRunning returns the deliveries whose handlers have not returned.
func (p *pool) stillRunning() []*delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*delivery
	for d := p.held.first; d != nil; d = d.links[byLease].next {
		if d.state == running {
			out = append(out, d)
		}
	}
	return out
}

// counts returns how many deliveries wait, run, and are held in all.
func (p *pool) counts() (waiting, running, held int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting(), p.running, p.held.len
}
