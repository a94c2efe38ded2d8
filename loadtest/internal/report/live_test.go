package report

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

func TestProgressLine(t *testing.T) {
	t.Parallel()
	p := Progress{
		Phase: "publish\x1b[2J", Rate: 1999.9, Published: 12000, Wanted: 20000, Handled: 11990, Backlog: 10, Dead: 3, Kills: -1, Duplicates: 2,
	}
	const want = `publish\x1b[2J 1m5s  1,999/s  published 12,000/20,000  handled 11,990  backlog 10  dead 3  duplicates 2`
	if diff := cmp.Diff(want, p.line(65*time.Second)); diff != "" {
		t.Error(diff)
	}
	if got := (Progress{Phase: "drain", Published: 5, Dead: -1, Kills: -1, Duplicates: -1}).line(0); got != "drain 0s  0/s  published 5  handled 0  backlog 0" {
		t.Error(got)
	}
}

// On a terminal there is one line, which is written anew and never reaches the edge; its last state stays.
func TestLiveOnATerminal(t *testing.T) {
	t.Parallel()
	terminal, device, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	const width = 40
	if err := pty.Setsize(terminal, &pty.Winsize{Cols: width, Rows: 5}); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	live := StartLive(device, func() Progress {
		return Progress{Phase: "publish", Published: calls.Add(1), Handled: 123456789, Backlog: 987654321}
	})
	screen := bufio.NewReader(terminal)
	for line := range 3 {
		got, err := screen.ReadString('K') // the sequence that clears the rest of the line ends in it
		if err != nil {
			t.Fatal(err)
		}
		text := strings.TrimSuffix(got, "\x1b[K")
		if !strings.HasPrefix(text, "\rpublish ") || len(text) != width || strings.Contains(text, "\n") {
			t.Errorf("line %d: %q", line, got)
		}
	}
	live.Stop()
	live.Stop()
	last := calls.Load()
	device.Close()
	var rest bytes.Buffer
	_, _ = rest.ReadFrom(screen) // ends with an error, since the terminal has gone
	if !strings.HasSuffix(rest.String(), "\x1b[K\r\n") {
		t.Errorf("the end is %q", rest.String())
	}
	if calls.Load() != last {
		t.Error("it reads on after Stop")
	}
}

// Elsewhere there is a whole line every five seconds, and one at the end.
func TestLiveInALog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		live := StartLive(&log, func() Progress { return Progress{Phase: "drain", Rate: 7} })
		time.Sleep(12 * time.Second)
		synctest.Wait()
		live.Stop()
		took := regexp.MustCompile(`(?m)^drain (\d+s)  7/s  .*$`).FindAllStringSubmatch(log.String(), -1)
		var got []string
		for _, m := range took {
			got = append(got, m[1])
		}
		if diff := cmp.Diff([]string{"5s", "10s", "12s"}, got); diff != "" || strings.ContainsAny(log.String(), "\r\x1b") {
			t.Errorf("%s\n%q", diff, log.String())
		}
	})
}
