package cli

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far long work is: a bar on a terminal, nothing elsewhere. It goes to standard error. Safe for concurrent
// use.
type progress struct{ bar *bar }

// newProgress begins a display; what names what is counted, such as "dead letters"; total 0 = not known.
func (a *app) newProgress(what string, total int) *progress {
	if !isTerminal(a.err) || os.Getenv("TERM") == "dumb" {
		return &progress{&bar{}}
	}
	a.bar.begin(a.err, what, total)
	return &progress{&a.bar}
}

// set says how many are done.
func (p *progress) set(done int) { p.bar.set(done) }

// close takes the display away. Safe more than once.
func (p *progress) close() { p.bar.end() }

// bar is what is shown at the end of the screen. Its zero value shows nothing.
type bar struct {
	mu    sync.Mutex
	shown *progressbar.ProgressBar
}

const (
	barWidth    = 30
	besideBar   = 60 // what is written beside it at most; a line that wraps could not be taken away
	barInterval = 100 * time.Millisecond
)

func (b *bar) begin(w io.Writer, what string, total int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if total <= 0 {
		total = -1
	}
	b.shown = progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(what),
		progressbar.OptionSetWidth(max(0, min(barWidth, terminalWidth(w)-besideBar))),
		progressbar.OptionShowCount(),
		progressbar.OptionShowIts(),
		progressbar.OptionSetItsString("msg"),
		progressbar.OptionThrottle(barInterval),
		progressbar.OptionSetSpinnerChangeInterval(0), // it would leave a goroutine behind
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionSetRenderBlankState(true),
	)
}

func (b *bar) set(done int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown != nil {
		_ = b.shown.Set(done) // a total that was too low is no news
	}
}

// above writes lines where the bar is, and draws it again below them.
func (b *bar) above(write func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown == nil {
		write()
		return
	}
	_ = b.shown.Clear()
	write()
	_ = b.shown.RenderBlank()
}

func (b *bar) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.shown != nil {
		_ = b.shown.Clear()
		b.shown = nil
	}
}
