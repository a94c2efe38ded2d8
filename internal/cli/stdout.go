package cli

import (
	"fmt"
	"io"
	"sync"
)

// stdout is the standard output. What could not be written once is not tried again, and told apart from a failure of Redis.
// Safe for concurrent use.
type stdout struct {
	mu  sync.Mutex
	w   io.Writer
	bar *bar // is taken away while something is written, where both are on the same terminal
	err error
}

// stdoutError says that nobody takes the output any more.
type stdoutError struct{ err error }

func (e *stdoutError) Error() string { return fmt.Sprintf("write to standard output: %v", e.err) }
func (e *stdoutError) Unwrap() error { return e.err }

func newStdout(w io.Writer, b *bar) *stdout {
	if !isTerminal(w) {
		b = &bar{}
	}
	return &stdout{w: w, bar: b}
}

// Write implements io.Writer.
func (s *stdout) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	s.bar.above(func() { n, err = s.w.Write(p) })
	if err != nil {
		s.err = &stdoutError{err}
	}
	return n, s.err
}

// failed returns the error of the first write that failed, or nil.
func (s *stdout) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
