//go:build unix

package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
)

// onTerminal runs f with an app whose streams are a terminal of so many columns, and returns what the screen shows; typed is typed
// before. Lines end with \n.
func onTerminal(t *testing.T, columns uint16, typed string, f func(a *app)) string {
	t.Helper()
	terminal, device, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Cols: columns, Rows: 50}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(terminal, typed); err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(terminal) // ends with EIO
		shown <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	a := &app{in: device, err: device, ctx: t.Context()}
	a.out = newStdout(device, &a.bar)
	f(a)
	device.Close()
	return <-shown
}

func TestListOnTerminal(t *testing.T) {
	t.Parallel()
	got := onTerminal(t, 40, "", func(a *app) {
		a.noColor = true
		l := a.newList("name", "count", "age", "text")
		for _, row := range [][]string{
			{"a", "7", "-", "short"},
			{"long name", "-", "3s", "a text that goes far beyond the screen"},
			{"世界", "1234567", "12s", "\x1b[2J"},
		} {
			if err := l.add(nil, row...); err != nil {
				t.Error(err)
			}
		}
		if err := l.close(); err != nil {
			t.Error(err)
		}
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	want := `NAME         COUNT  AGE  TEXT
a                7  -    short
long name        -  3s   a text that go…
世界       1234567  12s  \x1b[2J
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%s", diff, got)
	}
}

// A long listing appears in parts: one header, columns that only grow, and rows before the listing is at its end.
func TestLongListOnTerminal(t *testing.T) {
	t.Parallel()
	const rows = 3*gridRows + 7
	got := onTerminal(t, 60, "", func(a *app) {
		a.noColor = true
		l := a.newList("n", "text")
		for i := range rows {
			text := "x"
			if i == gridRows+1 {
				text = "wide text"
			}
			if err := l.add(nil, fmt.Sprint(i), text); err != nil {
				t.Error(err)
			}
			if len(l.grid.rows) > gridRows {
				t.Fatalf("%d rows are kept", len(l.grid.rows))
			}
		}
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != rows+1 || strings.Count(got, "TEXT") != 1 {
		t.Errorf("%d lines, %d headers; want %d and 1", len(lines), strings.Count(got, "TEXT"), rows+1)
	}
	for i, line := range lines[1:] {
		if !strings.Contains(line, fmt.Sprint(i)) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

func TestEmptyListOnTerminalHasNoHeader(t *testing.T) {
	t.Parallel()
	got := onTerminal(t, 60, "", func(a *app) {
		if err := a.newList("n").close(); err != nil {
			t.Error(err)
		}
	})
	if got != "" {
		t.Errorf("got %q", got)
	}
}

func TestColors(t *testing.T) {
	for _, c := range []struct {
		term, noColor string
		flag, want    bool
	}{
		{"xterm", "", false, true},
		{"xterm", "1", false, false},
		{"xterm", "false", false, false}, // any value that is not empty
		{"xterm", "", true, false},
		{"dumb", "", false, false},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.noColor)
		got := onTerminal(t, 60, "", func(a *app) {
			a.noColor = c.flag
			l := a.newList("n")
			if err := l.add(nil, "x"); err != nil {
				t.Error(err)
			}
			if err := l.close(); err != nil {
				t.Error(err)
			}
		})
		if colored := strings.Contains(got, "\x1b["); colored != c.want {
			t.Errorf("%+v: the screen shows %q", c, got)
		}
	}
	a := &app{out: newStdout(os.NewFile(^uintptr(0), "none"), &bar{})}
	if a.colors() {
		t.Error("colors where there is no terminal")
	}
}

// A last column that is wrapped is whole, in words, and stays in its column.
func TestListWrapsOnTerminal(t *testing.T) {
	t.Parallel()
	const long = "depth of queue: XQTYPE key {c}.worker.dlq holds a string, not a stream"
	for columns, want := range map[uint16]string{
		42: `QUEUE  NOTE
a
b      depth of queue: XQTYPE key
       {c}.worker.dlq holds a string, not
       a stream
`,
		20: `QUEUE  NOTE
a
b      depth of queue: XQTYPE
       key {c}.worker.dlq holds
       a string, not a stream
`,
	} {
		got := onTerminal(t, columns, "", func(a *app) {
			a.noColor = true
			l := a.newList("queue", "note")
			l.wrapLast()
			for _, row := range [][]string{{"a", ""}, {"b", long}} {
				if err := l.add(nil, row...); err != nil {
					t.Error(err)
				}
			}
			if err := l.close(); err != nil {
				t.Error(err)
			}
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", columns, diff)
		}
	}
}
