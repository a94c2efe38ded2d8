package cli

import (
	"errors"
	"runtime"
)

// starter starts commands, all from one thread, which nothing else runs on and which lives as long as it does: a command that
// is to end with its parent ends with the thread that started it, not with the process.
type starter struct {
	calls chan func()
	quit  chan struct{}
	ended chan struct{}
}

func newStarter() *starter {
	s := &starter{calls: make(chan func()), quit: make(chan struct{}), ended: make(chan struct{})}
	go s.loop()
	return s
}

func (s *starter) loop() {
	defer close(s.ended)
	runtime.LockOSThread() // for good: the thread ends here too
	for {
		select {
		case call := <-s.calls:
			call()
		case <-s.quit:
			return
		}
	}
}

var errStarterClosed = errors.New("the worker has ended")

// do calls start, on the thread of the starter.
func (s *starter) do(start func() error) error {
	result := make(chan error, 1)
	select {
	case s.calls <- func() { result <- start() }:
		return <-result
	case <-s.quit:
		return errStarterClosed
	}
}

// close ends the thread, and with it the commands that still run where they end with their parent.
func (s *starter) close() {
	close(s.quit)
	<-s.ended
}
