package report

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// redraw is how often the line on a terminal is written anew.
	redraw = 250 * time.Millisecond
	// plainEvery is how often a line is written where there is no terminal.
	plainEvery = 5 * time.Second
)

// Progress is how far a run has come. Figures that are negative do not apply and are left out.
type Progress struct {
	// Phase is what goes on, such as "publish" or "drain".
	Phase string
	// Rate is messages handled per second, lately.
	Rate float64
	// Published counts acknowledged publishes, of Wanted; a Wanted of 0 is not known.
	Published, Wanted int64
	// Handled counts handlers that ended well, Dead the dead letters.
	Handled, Dead int64
	// Kills counts the processes that were killed.
	Kills int64
	// Duplicates counts messages that were handled once too often.
	Duplicates int64
	// Backlog is what waits or is being handled.
	Backlog int64
}

// Live shows the progress of a run: one line that is written anew on a terminal, a line every five seconds elsewhere.
type Live struct {
	w     io.Writer
	read  func() Progress
	began time.Time
	// width of the terminal, or 0 where there is none.
	width func() int

	once sync.Once
	stop chan struct{}
	done chan struct{}
}

// StartLive begins to write to w, usually the standard error stream. It calls read before each line, from a goroutine of
// its own, which ends with [Live.Stop].
func StartLive(w io.Writer, read func() Progress) *Live {
	l := &Live{
		w: w, read: read, began: time.Now(), width: widthOf(w),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go l.run()
	return l
}

// Stop writes the last state and ends the line. It returns when nothing is written any more, also when called twice.
func (l *Live) Stop() {
	l.once.Do(func() { close(l.stop) })
	<-l.done
}

func (l *Live) run() {
	defer close(l.done)
	every := plainEvery
	if l.width() > 0 {
		every = redraw
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.show(false)
		case <-l.stop:
			l.show(true)
			return
		}
	}
}

// show writes one line. What cannot be written is lost: the report has it all.
func (l *Live) show(last bool) {
	line := l.read().line(time.Since(l.began))
	width := l.width()
	if width == 0 {
		fmt.Fprintln(l.w, line)
		return
	}
	// A line as wide as the terminal would wrap, and the next one would not cover it.
	if runes := []rune(line); len(runes) >= width {
		line = string(runes[:width-1])
	}
	end := ""
	if last {
		end = "\n"
	}
	fmt.Fprintf(l.w, "\r%s\x1b[K%s", line, end)
}

func (p Progress) line(took time.Duration) string {
	parts := []string{
		fmt.Sprintf("%s %s", printable(p.Phase), took.Round(time.Second)),
		FormatCount(int64(p.Rate)) + "/s",
	}
	published := "published " + FormatCount(p.Published)
	if p.Wanted > 0 {
		published += "/" + FormatCount(p.Wanted)
	}
	if p.Published >= 0 {
		parts = append(parts, published)
	}
	for _, f := range []struct {
		name string
		n    int64
	}{
		{"handled", p.Handled}, {"backlog", p.Backlog}, {"dead", p.Dead}, {"kills", p.Kills}, {"duplicates", p.Duplicates},
	} {
		if f.n >= 0 {
			parts = append(parts, f.name+" "+FormatCount(f.n))
		}
	}
	return strings.Join(parts, "  ")
}

// widthOf returns a function that asks for the width of the terminal w, which may change; it returns 0 for anything else.
func widthOf(w io.Writer) func() int {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func() int { return 0 }
	}
	return func() int {
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil || width <= 1 {
			return 80
		}
		return width
	}
}
