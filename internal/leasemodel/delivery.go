package leasemodel

// command is a command for one delivery. It may be carried out and its reply be lost; then is what the worker does with the reply, silent
// what it does without.
type command struct {
	what         string
	success      bool
	run          func(s *State, d *Delivery)
	then, silent func(s *State, d *Delivery)
}

// send adds both outcomes of a command.
func (p *stepper) send(w, i int, c command) {
	d := p.from.Workers[w].Held[i]
	by := Owner(w + 1)
	held := p.from.holds(d.Place, d.ID, by)
	a := Action{What: c.what, Worker: by, Msg: d.Msg, ends: held && c.success, fenced: !held && !c.success}
	for _, silent := range []bool{false, true} {
		a.Silent = silent
		after := c.then
		if silent {
			after = c.silent
		}
		p.to(a, func(s *State) {
			d := &s.Workers[w].Held[i]
			c.run(s, d)
			after(s, d)
		})
	}
}

func nothing(*State, *Delivery) {}

// forget drops a delivery: pool.forget. One that was read again meanwhile has a row to end: settleRepeats in stray.go.
func forget(_ *State, d *Delivery) {
	switch {
	case !d.Twice:
		*d = Delivery{}
	case d.Phase == Acking:
		d.Twice = false
	default:
		*d = Delivery{Phase: Returning, Place: d.Place, ID: d.ID, Msg: d.Msg}
	}
}

// unsure: the write is tried again: park in settler.go.
func unsure(_ *State, d *Delivery) { d.Excused = true }

// delivery is deliver.go, settle.go and settler.go for one message in a worker.
func (p *stepper) delivery(w, i int) {
	d := p.from.Workers[w].Held[i]
	by := Owner(w + 1)
	switch d.Phase {
	case Waiting:
		p.waits(w, i)
	case Running:
		p.returns(w, i)
	case Acking:
		p.send(w, i, command{what: "acks", success: true, run: p.m.Scripts.Ack, then: forget, silent: unsure})
	case Failing:
		p.fails(w, i)
	case Releasing:
		p.send(w, i, command{
			what: "releases", run: func(s *State, d *Delivery) { postpone(s, by, d) }, then: forget, silent: unsure,
		})
	case Returning:
		p.send(w, i, command{
			what: "gives back", run: func(s *State, d *Delivery) { p.m.Scripts.Release(s, by, d.Place, d.ID) },
			then: func(_ *State, d *Delivery) { *d = Delivery{} }, silent: parkRelease,
		})
	case None:
	}
	if p.from.Workers[w].Mode == Stopping {
		p.marks(w, i)
	}
}

// parkRelease leaves a release to the settler, which writes it as a verdict: giveBack in release.go.
func parkRelease(_ *State, d *Delivery) { d.Phase, d.Excused = Releasing, true }

// waits: a handler begins, or the message is given back because it waited too long, or the worker stops.
func (p *stepper) waits(w, i int) {
	by := Owner(w + 1)
	begin := func(_ *State, d *Delivery) { d.Phase = Running }
	p.send(w, i, command{
		what: "gives back", run: func(s *State, d *Delivery) { p.m.Scripts.Release(s, by, d.Place, d.ID) },
		then: forget, silent: parkRelease,
	})
	if p.from.Workers[w].Mode != Up {
		return
	}
	p.to(Action{What: "begins", Worker: by, Msg: p.from.Workers[w].Held[i].Msg}, func(s *State) { begin(s, &s.Workers[w].Held[i]) })
	if p.from.Workers[w].Held[i].Excused {
		// It stood still: charge in suspect.go renews before the handler.
		held := false
		p.send(w, i, command{
			what: "asks before it begins", run: func(s *State, d *Delivery) { held = p.extend(s, by, d, false) },
			then: func(s *State, d *Delivery) {
				if held {
					begin(s, d)
				} else {
					forget(s, d)
				}
			},
			silent: func(_ *State, d *Delivery) { d.Phase = Releasing },
		})
	}
}

// returns: what a handler may come to. What is lost is not written, unless it is a success: settle in settle.go.
func (p *stepper) returns(w, i int) {
	for _, verdict := range []Phase{Acking, Failing, Releasing} {
		a := Action{What: "handled with the verdict " + phaseNames[verdict] + ",", Worker: Owner(w + 1), Msg: p.from.Workers[w].Held[i].Msg}
		p.to(a, func(s *State) {
			d := &s.Workers[w].Held[i]
			if d.Lost && verdict != Acking {
				forget(s, d)
				return
			}
			d.Phase = verdict
		})
	}
}

// fails writes a failure, which is counted when the first command reaches a message that its worker holds.
func (p *stepper) fails(w, i int) {
	by := Owner(w + 1)
	more := false
	p.send(w, i, command{what: "fails", run: func(s *State, d *Delivery) {
		if d.Step == 0 && s.holds(d.Place, d.ID, by) {
			s.Failures[d.Msg]++
		}
		if more = p.m.Scripts.Fail[d.Step](s, p.m.Budgets, by, d); more {
			d.Step++
		}
	}, then: func(s *State, d *Delivery) {
		if !more {
			forget(s, d)
		}
	}, silent: unsure})
}

// extend runs the script. The checker notes a lease that is good again.
func (p *stepper) extend(s *State, by Owner, d *Delivery, unstarted bool) bool {
	held := p.m.Scripts.Extend(s, by, d.Place, d.ID, unstarted)
	if held {
		d.Excused = false
	}
	return held
}

// renews is lease.go: a lost message that waits is dropped, a handler's context ends, and what has a verdict is left to its settle.
func (p *stepper) renews(w, i int) {
	by := Owner(w + 1)
	if d := p.from.Workers[w].Held[i]; d.Lost || d.Phase == Returning {
		return
	}
	held := false
	p.send(w, i, command{what: "renews", run: func(s *State, d *Delivery) {
		held = p.extend(s, by, d, false)
	}, then: func(s *State, d *Delivery) {
		switch {
		case held:
		case d.Phase == Waiting:
			forget(s, d)
		case d.Phase == Running:
			d.Lost = true
		}
	}, silent: nothing})
}

// marks is leaveBehind in stop.go: what is still held runs out as a release.
func (p *stepper) marks(w, i int) {
	by := Owner(w + 1)
	p.send(w, i, command{
		what: "marks as left behind", run: func(s *State, d *Delivery) { p.extend(s, by, d, true) }, then: nothing, silent: nothing,
	})
}
