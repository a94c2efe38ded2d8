package leasemodel

import "fmt"

// Model is a protocol with its bounds.
type Model struct {
	Scripts     Scripts
	Budgets     Budgets
	Messages    int // 1 or 2
	Slots       int // deliveries in one worker: 1 or 2
	Redrives    int // how many dead letters are redriven
	GroupLosses int // how often a consumer group is lost
}

// Action is one step from a state to the next.
type Action struct {
	What   string
	Worker Owner // Nobody: it is nobody's in particular
	Msg    uint8 // noMsg: of no message in particular
	Silent bool  // it is a command that was carried out, and its reply lost
	Next   State

	moved  bool // it changed Redis
	fenced bool // it must not: the worker does not hold the message
	ends   bool // a success for a message that the worker holds
}

const noMsg uint8 = 255

func (a *Action) String() string {
	s := a.What
	if a.Worker != Nobody {
		s = fmt.Sprintf("w%d %s", a.Worker, s)
		if a.Msg != noMsg {
			s += fmt.Sprintf(" m%d", a.Msg)
		}
	}
	if a.Silent {
		s += ", reply lost"
	}
	return s
}

// stepper collects what can happen in one state.
type stepper struct {
	m    *Model
	from *State
	out  []Action
}

// to adds an action, unless it changes nothing.
func (p *stepper) to(a Action, change func(s *State)) {
	a.Next = *p.from
	change(&a.Next)
	a.moved = a.Next.Redis != p.from.Redis
	a.Next.canonical()
	if a.Next != *p.from {
		p.out = append(p.out, a)
	}
}

// steps returns everything that can happen next.
func (m *Model) steps(s *State, into []Action) []Action {
	p := &stepper{m, s, into[:0]}
	for w := range s.Workers {
		p.worker(w)
	}
	p.loops()
	p.world()
	return p.out
}

// worker is what one process does.
func (p *stepper) worker(w int) {
	by := Owner(w + 1)
	switch mode := p.from.Workers[w].Mode; mode {
	case Off:
		p.to(Action{What: "starts", Worker: by, Msg: noMsg}, func(s *State) { s.Workers[w].Mode = Up })
		return
	case Up:
		p.to(Action{What: "begins to stop", Worker: by, Msg: noMsg}, func(s *State) { s.Workers[w].Mode = Stopping })
		p.reads(w)
	case Stopping:
	}
	p.to(Action{What: "dies", Worker: by, Msg: noMsg}, func(s *State) { s.crash(w) })
	p.strays(w)
	for i := range p.from.Workers[w].Held {
		if p.from.Workers[w].Held[i].Phase != None {
			p.delivery(w, i)
			p.renews(w, i)
		}
	}
}

// crash ends a process. Its consumer stays, and nobody is ever called like it again.
func (s *State) crash(w int) {
	s.Workers[w] = Worker{}
	for i := range s.Entries {
		if s.Entries[i].Owner == Owner(w+1) {
			s.Entries[i].Owner = Gone
		}
	}
}

// reads is reader.go: the oldest undelivered entry of the queue, any of the retry stream.
func (p *stepper) reads(w int) {
	oldest := true
	for i, e := range p.from.Entries {
		if e.Place > Retry || e.Place == Nowhere || e.Delivered || e.Place == Queue && !oldest {
			continue
		}
		oldest = oldest && e.Place != Queue
		a := Action{What: "reads", Worker: Owner(w + 1), Msg: e.Msg}
		if slot := p.from.Workers[w].slotFor(e, p.m.Slots); slot >= 0 {
			p.to(a, func(s *State) {
				read(&s.Entries[i], a.Worker)
				s.Workers[w].Held[slot].take(e)
			})
		}
		a.Silent = true
		p.to(a, func(s *State) { read(&s.Entries[i], a.Worker) })
	}
}

// slotFor returns where a worker keeps an entry that it reads: where it holds that already, or where there is room.
func (w *Worker) slotFor(e Entry, slots int) int {
	free, used := -1, 0
	for i, d := range w.Held {
		if d.Phase == None {
			free = i
		} else if d.Place == e.Place && d.ID == e.ID {
			return i
		} else {
			used++
		}
	}
	if used >= slots {
		return -1
	}
	return free
}

// take is what was read. What is held already is not run twice: withoutRepeats in reader.go.
func (d *Delivery) take(e Entry) {
	if d.Phase == None || d.Phase == Returning {
		*d = Delivery{Phase: Waiting, Place: e.Place, ID: e.ID, Msg: e.Msg}
		return
	}
	d.Twice, d.Excused = true, false
}

// strays is stray.go: what Redis says a worker holds, and it knows nothing of, is given back.
func (p *stepper) strays(w int) {
	by := Owner(w + 1)
	for _, e := range p.from.Entries {
		if e.Owner == by && !p.from.Workers[w].knows(e) {
			p.to(Action{What: "gives back what it never saw,", Worker: by, Msg: e.Msg}, func(s *State) {
				p.m.Scripts.Release(s, by, e.Place, e.ID)
			})
		}
	}
}

func (w *Worker) knows(e Entry) bool {
	for _, d := range w.Held {
		if d.Phase != None && d.Phase != Returning && d.Place == e.Place && d.ID == e.ID {
			return true
		}
	}
	return false
}

// loops is what the sweeper, the promoter and the compactor of any worker that lives do.
func (p *stepper) loops() {
	alive := false
	for _, w := range p.from.Workers {
		alive = alive || w.Mode != Off
	}
	if !alive {
		return
	}
	for i, e := range p.from.Entries {
		if e.Owner != Nobody {
			p.to(Action{What: fmt.Sprintf("a sweep takes over m%d", e.Msg)}, func(s *State) {
				if e.Expired && e.Charged {
					s.Losses[e.Msg]++
				}
				p.m.Scripts.Reclaim(s, p.m.Budgets, &s.Entries[i])
			})
		}
		if e.Place == Backoff {
			p.to(Action{What: fmt.Sprintf("m%d is due", e.Msg)}, func(s *State) { promote(s, &s.Entries[i]) })
		}
	}
	p.to(Action{What: "the queue is trimmed"}, func(s *State) { compact(&s.Redis, p.m.Scripts.Bound(&s.Redis)) })
}

// world is what happens to all of them.
func (p *stepper) world() {
	for i, e := range p.from.Entries {
		if e.Owner != Nobody && !e.Expired {
			p.to(Action{What: fmt.Sprintf("the lease of m%d runs out", e.Msg)}, func(s *State) { s.expire(i) })
		}
		if e.Place == Dead && int(p.from.Redrives) < p.m.Redrives {
			p.to(Action{What: fmt.Sprintf("m%d is redriven", e.Msg)}, func(s *State) {
				s.Redrives++
				s.Failures[e.Msg], s.Losses[e.Msg] = 0, 0
				redrive(s, &s.Entries[i])
			})
		}
	}
	if int(p.from.GroupLosses) == p.m.GroupLosses {
		return
	}
	for _, place := range []Place{Queue, Retry} {
		if groupCanBeLost(&p.from.Redis, place) {
			p.to(Action{What: "the group is lost on the " + placeNames[place]}, func(s *State) {
				s.GroupLosses++
				loseGroup(s, place)
			})
		}
	}
}

// expire lets a lease run out. Who holds it may live, and have stood still.
func (s *State) expire(i int) {
	e := &s.Entries[i]
	e.Expired = true
	if e.Owner == Gone {
		return
	}
	for j := range s.Workers[e.Owner-1].Held {
		if d := &s.Workers[e.Owner-1].Held[j]; d.Phase != None && d.Place == e.Place && d.ID == e.ID {
			d.Excused = true
		}
	}
}
