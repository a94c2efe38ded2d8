package cli

import "sync"

// startLimit counts the commands that are started, and lets no more than --max of them start.
type startLimit struct {
	most  int    // 0 = no limit
	spent func() // called once, when the last one has started

	mu       sync.Mutex
	reserved int // those about to start among them
	started  int
}

// reserve takes the right to start one. It has to be used, by start or unused.
func (l *startLimit) reserve() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most > 0 && l.reserved == l.most {
		return false
	}
	l.reserved++
	return true
}

// unused gives back the right to start one.
func (l *startLimit) unused() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved--
}

// start notes that one has started.
func (l *startLimit) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started++; l.started == l.most {
		l.spent()
	}
}
