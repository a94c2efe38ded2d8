package leasemodel

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Report is how much was seen.
type Report struct {
	States, Transitions int
	Depth               int // steps to the state that is furthest away
}

// ViolationError is the shortest way to a broken promise. It is an error.
type ViolationError struct {
	Broken string
	Trace  []string // one line a step: what happened, and the state after it
}

func (v *ViolationError) Error() string {
	return v.Broken + "\n" + strings.Join(v.Trace, "\n")
}

// explorer is a walk over all states.
type explorer struct {
	m      *Model
	seed   maphash.Seed
	states []State
	parent []int32
	depth  []int16
	index  map[uint64]int32 // hash -> the last state of that hash
	chain  []int32          // state -> the one before it of the same hash
	edges  [][2]int32
}

// Check walks all states of a model. The error is a *ViolationError.
func Check(m Model) (Report, error) {
	x := &explorer{m: &m, seed: maphash.MakeSeed(), index: map[uint64]int32{}}
	var start State
	for msg := range m.Messages {
		start.Entries[msg] = Entry{Place: Queue, ID: uint8(msg), Msg: uint8(msg), Stored: true}
	}
	start.canonical()
	x.visit(start, -1)
	var steps []Action
	for at := 0; at < len(x.states); at++ {
		from := x.states[at]
		steps = m.steps(&from, steps)
		for i := range steps {
			a := &steps[i]
			broken := a.wrong()
			if broken == "" {
				broken = m.broken(&a.Next)
			}
			if broken != "" {
				return x.report(), &ViolationError{broken, append(x.trace(int32(at)), line(a))}
			}
			x.edges = append(x.edges, [2]int32{int32(at), x.visit(a.Next, int32(at))})
		}
	}
	return x.report(), x.stuck()
}

func (x *explorer) report() Report {
	return Report{States: len(x.states), Transitions: len(x.edges), Depth: int(x.depth[len(x.depth)-1])}
}

// visit returns the number of a state, a new one if it was not seen before.
func (x *explorer) visit(s State, from int32) int32 {
	hash := maphash.Comparable(x.seed, s)
	last, seen := x.index[hash]
	if !seen {
		last = -1
	}
	for i := last; i >= 0; i = x.chain[i] {
		if x.states[i] == s {
			return i
		}
	}
	n := int32(len(x.states))
	x.states, x.parent, x.chain = append(x.states, s), append(x.parent, from), append(x.chain, last)
	x.index[hash] = n
	var depth int16
	if from >= 0 {
		depth = x.depth[from] + 1
	}
	x.depth = append(x.depth, depth)
	return n
}

// trace is the shortest way to a state. The steps are found again: to keep them for every state would take most of the memory.
func (x *explorer) trace(at int32) []string {
	if x.parent[at] < 0 {
		return []string{line(&Action{What: "at first", Next: x.states[at]})}
	}
	before := x.parent[at]
	for _, a := range x.m.steps(&x.states[before], nil) {
		if a.Next == x.states[at] {
			return append(x.trace(before), line(&a))
		}
	}
	return append(x.trace(before), "?")
}

func line(a *Action) string { return fmt.Sprintf("%-44s %s", a, &a.Next) }

// stuck is P1: from every state there is a way to the end of all messages.
func (x *explorer) stuck() error {
	n := len(x.states)
	// The edges by where they lead to, in one array.
	first := make([]int32, n+1)
	for _, e := range x.edges {
		first[e[1]+1]++
	}
	for i := range n {
		first[i+1] += first[i]
	}
	into := make([]int32, len(x.edges))
	fill := append([]int32(nil), first...)
	for _, e := range x.edges {
		into[fill[e[1]]] = e[0]
		fill[e[1]]++
	}
	reaches := make([]bool, n)
	var todo []int32
	for i := range x.states {
		if x.m.ended(&x.states[i]) {
			reaches[i] = true
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, from := range into[first[at]:first[at+1]] {
			if !reaches[from] {
				reaches[from] = true
				todo = append(todo, from)
			}
		}
	}
	for i := range reaches {
		if !reaches[i] {
			return &ViolationError{"P1: from here the messages never end", x.trace(int32(i))}
		}
	}
	return nil
}
