package demo

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Progress shows how far the demonstration is. It is safe for concurrent use.
type Progress interface {
	// Say tells that something happened, in one line.
	Say(format string, args ...any)
	// Advance tells how many messages of how many are done.
	Advance(done, total int)
	// Write shows the lines of a log.
	io.Writer
	// Close ends the display. Safe more than once.
	Close()
}

// NewProgress shows a bar when w is a terminal, and plain lines otherwise.
func NewProgress(w io.Writer) Progress {
	file, ok := w.(*os.File)
	if ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb" {
		return &bar{w: w}
	}
	return &lines{w: w}
}

// lines are for pipes and files: one for each event, and one for each tenth of the way.
type lines struct {
	mu     sync.Mutex
	w      io.Writer
	tenths int
}

func (l *lines) Say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.w, format+"\n", args...)
}

func (l *lines) Advance(done, total int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if tenths := 10 * done / total; tenths > l.tenths {
		l.tenths = tenths
		fmt.Fprintf(l.w, "%d of %d done\n", done, total)
	}
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lines) Close() {}

// bar is for a terminal: events scroll by above it.
type bar struct {
	mu    sync.Mutex
	w     io.Writer
	shown *progressbar.ProgressBar // nil before the first message, and again when all are done
	full  bool
}

func (b *bar) Say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.above(fmt.Appendf(nil, format+"\n", args...))
}

func (b *bar) Advance(done, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full {
		return
	}
	if b.shown == nil {
		b.shown = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(b.w),
			progressbar.OptionSetDescription("messages"),
			progressbar.OptionSetWidth(40),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false),
			progressbar.OptionUseANSICodes(true),
		)
	}
	_ = b.shown.Set(done) // only the terminal could refuse it
	if done >= total {
		b.leave()
		b.full = true
	}
}

func (b *bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.above(bytes.Clone(p))
	return len(p), nil
}

// above writes lines where the bar is and draws it again below them.
func (b *bar) above(text []byte) {
	if b.shown == nil {
		_, _ = b.w.Write(text)
		return
	}
	_ = b.shown.Clear()
	_, _ = b.w.Write(text)
	_ = b.shown.RenderBlank()
}

// leave goes on below the bar.
func (b *bar) leave() {
	if b.shown != nil {
		fmt.Fprintln(b.w)
		b.shown = nil
	}
}

func (b *bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leave()
}
