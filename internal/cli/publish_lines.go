package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// line is one line of the input, without its end.
type line struct {
	number int // from 1, empty lines counted
	body   []byte
}

// lineReader cuts a stream into lines. It holds no more than one of them.
type lineReader struct {
	from    *bufio.Reader
	longest int // in bytes, without the end of the line
	number  int // of the line read last
	skipped int // empty ones
}

func newLineReader(from io.Reader, longest int) *lineReader {
	return &lineReader{from: bufio.NewReaderSize(from, 64<<10), longest: longest}
}

// next returns the next line that is not empty, in memory of its own; io.EOF after the last.
func (r *lineReader) next() (line, error) {
	for {
		body, err := r.read()
		if err != nil {
			return line{}, err
		}
		if len(body) > 0 {
			return line{r.number, body}, nil
		}
		r.skipped++
	}
}

// read returns one line without its end, which the last line of the input may lack.
func (r *lineReader) read() ([]byte, error) {
	const ending = 2 // \r\n
	var body []byte
	for {
		part, err := r.from.ReadSlice('\n')
		body = append(body, part...)
		if err == nil || errors.Is(err, io.EOF) && len(body) > 0 {
			r.number++
			if whole, ok := bytes.CutSuffix(body, []byte("\n")); ok {
				body = bytes.TrimSuffix(whole, []byte("\r"))
			}
			if len(body) > r.longest {
				return nil, r.tooLong(r.number)
			}
			return body, nil
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case len(body) > r.longest+ending:
			return nil, r.tooLong(r.number + 1)
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("line %d cannot be read: %w", r.number+1, err)
		}
	}
}

func (r *lineReader) tooLong(number int) error {
	return fmt.Errorf("line %d is longer than the %d bytes of --max-body", number, r.longest)
}

// Bounds of what is gathered while a batch is on its way: what PublishBatch writes at once.
const (
	gatherLines = 500
	gatherBytes = 4 << 20
)

// gathered holds lines between the reader and the sender. The sender takes all there are: lines that come fast travel in full
// batches, and one that comes alone leaves at once, with no timer involved.
type gathered struct {
	mu      sync.Mutex
	changed sync.Cond
	lines   []line
	size    int
	end     error // why no more will come
}

func newGathered() *gathered {
	g := &gathered{}
	g.changed.L = &g.mu
	return g
}

// add waits for room. It returns false when nobody takes lines any more.
func (g *gathered) add(l line) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.end == nil && (len(g.lines) >= gatherLines || g.size >= gatherBytes) {
		g.changed.Wait()
	}
	if g.end != nil {
		return false
	}
	if len(g.lines) == 0 {
		g.changed.Broadcast()
	}
	g.lines = append(g.lines, l)
	g.size += len(l.body)
	return true
}

// finish says why no more lines will come. Those that are there are still taken.
func (g *gathered) finish(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end == nil {
		g.end = why
	}
	g.changed.Broadcast()
}

// abandon is finish, and those that are there are dropped.
func (g *gathered) abandon(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end == nil || len(g.lines) > 0 {
		g.end, g.lines = why, nil
	}
	g.changed.Broadcast()
}

// take waits for lines and returns all there are, or why there will be none.
func (g *gathered) take() ([]line, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.lines) == 0 && g.end == nil {
		g.changed.Wait()
	}
	if len(g.lines) == 0 {
		return nil, g.end
	}
	taken := g.lines
	g.lines, g.size = make([]line, 0, gatherLines), 0
	g.changed.Broadcast()
	return taken, nil
}

// gather reads lines on its own goroutine until the input ends or nobody takes them any more.
func (r *lineReader) gather(into *gathered) {
	for {
		l, err := r.next()
		if err != nil {
			into.finish(err)
			return
		}
		if !into.add(l) {
			return
		}
	}
}
