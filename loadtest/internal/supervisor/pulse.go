package supervisor

import (
	"context"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// A pulse asks the server for a PING every beat. What takes longer than that and late is noted, and when this process itself got no
// time for pause, most likely no other process of the machine did: virtual machines stand still for seconds.
const (
	beat  = 10 * time.Millisecond
	late  = 10 * time.Millisecond
	pause = 500 * time.Millisecond
)

// Pulse notes when the machine or the server was late: nobody is to blame for what ran out then.
type Pulse struct {
	server resp.Options
	cancel context.CancelFunc
	done   chan struct{}
	conn   *resp.Conn

	mu     sync.Mutex
	events []fault.Event
}

// StartPulse begins to look. It ends with [Pulse.Stop].
func StartPulse(server resp.Options) *Pulse {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pulse{server: server, cancel: cancel, done: make(chan struct{})}
	go p.run(ctx)
	return p
}

func (p *Pulse) run(ctx context.Context) {
	defer close(p.done)
	defer p.hangUp()
	for ctx.Err() == nil {
		slept := time.Now()
		select {
		case <-time.After(beat):
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		p.ping(ctx)
		p.note(slept, asked, time.Now())
	}
}

// ping waits for an answer, or for the end of the connection: an outage is noted by whoever makes it.
func (p *Pulse) ping(ctx context.Context) {
	if p.conn == nil {
		conn, err := resp.Dial(ctx, p.server)
		if err != nil {
			return
		}
		p.conn = conn
	}
	if _, err := p.conn.Do("PING"); err != nil {
		p.hangUp()
	}
}

func (p *Pulse) hangUp() {
	if p.conn != nil {
		_ = p.conn.Close() // nothing is under way on it
		p.conn = nil
	}
}

// note compares three looks at the clock, and of the first two also the wall clocks: the monotonic one may stand still in a pause.
func (p *Pulse) note(slept, asked, answered time.Time) {
	sleep := max(asked.Sub(slept), asked.Round(0).Sub(slept.Round(0)))
	p.mu.Lock()
	defer p.mu.Unlock()
	if sleep >= beat+pause {
		p.events = append(p.events, fault.Event{Kind: fault.Pause, From: slept, To: asked})
	}
	if sleep+answered.Sub(asked) >= beat+late {
		p.events = append(p.events, fault.Event{Kind: fault.Late, From: slept.Add(beat), To: answered})
	}
}

// Stop ends the looking.
func (p *Pulse) Stop() {
	p.cancel()
	<-p.done
}

// Events returns what was noted so far.
func (p *Pulse) Events() []fault.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]fault.Event(nil), p.events...)
}
