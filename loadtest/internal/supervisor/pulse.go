package supervisor

import (
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/fault"
)

const (
	// beat is how often a pulse looks at the clock; a pause is a beat that comes so much late. Busy machines are late by a tenth
	// of this.
	beat  = 50 * time.Millisecond
	pause = 500 * time.Millisecond
)

// Pulse notes when this process got no time, so most likely no other process of the machine did: virtual machines stand still for
// seconds. Nobody is to blame for what ran out then.
type Pulse struct {
	stop chan struct{}
	done chan struct{}
	once sync.Once

	mu     sync.Mutex
	events []fault.Event
}

// StartPulse begins to look. It ends with [Pulse.Stop].
func StartPulse() *Pulse {
	p := &Pulse{stop: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *Pulse) run() {
	defer close(p.done)
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-ticker.C:
		case <-p.stop:
			return
		}
		now := time.Now()
		p.beat(last, now)
		last = now
	}
}

// beat compares two looks at the clock, and its wall clock with its monotonic one, which may stand still in a pause.
func (p *Pulse) beat(last, now time.Time) {
	took := max(now.Sub(last), now.Round(0).Sub(last.Round(0)))
	if took < beat+pause {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, fault.Event{Kind: fault.Pause, From: last, To: now})
}

// Stop ends the looking.
func (p *Pulse) Stop() {
	p.once.Do(func() { close(p.stop) })
	<-p.done
}

// Events returns the pauses so far.
func (p *Pulse) Events() []fault.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]fault.Event(nil), p.events...)
}
