package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// dangerous are texts that would do something to a terminal, or to who reads it.
var dangerous = map[string]string{
	"\x1b[2J\x1b]0;title\x07":   `\x1b[2J\x1b]0;title\x07`,
	"\x00\x08\x7f":              `\x00\x08\x7f`,
	"a\tb\r\nc":                 `a\tb\r\nc`,
	"\u009b31m\u0085":           `\u009b31m\u0085`,
	"\x9b31m\xff\xc3":           `\x9b31m\xff\xc3`,
	"user\u202egnp.exe":         `user\u202egnp.exe`,
	"\u2066x\u2069\u200b\ufeff": `\u2066x\u2069\u200b\ufeff`,
	"\u2028\u2029":              `\u2028\u2029`,
	"\U000e0041":                `\U000e0041`,
	"\u00a0":                    `\u00a0`,
	`C:\new "quoted" <b>`:       `C:\new "quoted" <b>`,
	"héllo 世界 🙂 \ufffd":         "héllo 世界 🙂 \ufffd",
	"":                          "",
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range dangerous {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %s, want %s", in, got, want)
		}
	}
}

// safeOnTerminal reports a text that holds nothing but what a terminal shows as it is.
func safeOnTerminal(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

func TestPrintableIsSafeForAnyBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		if out := printable(in); !safeOnTerminal(out) {
			t.Fatalf("printable(%q) = %q", in, out)
		}
	})
}

func TestJSONIsExactAndSafe(t *testing.T) {
	t.Parallel()
	check := func(t interface {
		Helper()
		Fatalf(string, ...any)
	}, in string,
	) {
		t.Helper()
		var out bytes.Buffer
		a := &app{out: &out, json: true}
		if err := a.print(map[string]string{"text": in}); err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		line, ended := strings.CutSuffix(out.String(), "\n")
		if !ended || !safeOnTerminal(line) {
			t.Fatalf("%q: not one safe line: %q", in, out.String())
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(line), &back); err != nil {
			t.Fatalf("%q: %v in %s", in, err, line)
		}
		if back["text"] != in {
			t.Fatalf("%q came back as %q", in, back["text"])
		}
	}
	for in := range dangerous {
		if utf8.ValidString(in) {
			check(t, in)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t, rapid.String().Draw(t, "text")) })
}

func TestJSONDoesNotEscapeForHTML(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := (&app{out: &out}).print(map[string]string{"a": "<&>"}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "{\"a\":\"<&>\"}\n" {
		t.Errorf("got %s", out.String())
	}
}

func TestListInPipe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{out: newStdout(&out, &bar{})}
	l := a.newList("name", "text")
	for _, row := range [][]string{{"a", "x\ty"}, {"b", "\x1b[31m\n"}, {"c", ""}} {
		if err := l.add(nil, row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.close(), l.close()); err != nil {
		t.Fatal(err)
	}
	want := "a\tx\\ty\nb\t\\x1b[31m\\n\nc\t\n"
	if diff := cmp.Diff(want, out.String()); diff != "" || l.rows != 3 {
		t.Errorf("%d rows, -want +got:\n%s", l.rows, diff)
	}
}

func TestListAsJSON(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{out: newStdout(&out, &bar{}), json: true}
	l := a.newList("name")
	for _, name := range []string{"a", "b"} {
		if err := l.add(map[string]string{"name": name}, "not "+name); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\"name\":\"a\"}\n{\"name\":\"b\"}\n", out.String()); diff != "" || l.rows != 2 {
		t.Errorf("%d rows, -want +got:\n%s", l.rows, diff)
	}
}

// broken takes no more than one write.
type broken struct{ writes int }

func (b *broken) Write(p []byte) (int, error) {
	b.writes++
	if b.writes > 1 {
		return 0, syscall.EPIPE
	}
	return len(p), nil
}

// A closed output ends a listing at the next row, is not written to again, and is not taken for a failure of Redis.
func TestStdoutIsNotWrittenToAfterItFailed(t *testing.T) {
	t.Parallel()
	w := &broken{}
	a := &app{out: newStdout(w, &bar{})}
	l := a.newList("name")
	var err error
	rows := 0
	for err == nil && rows < 100 {
		err = l.add(nil, "x")
		rows++
	}
	for range 3 {
		_, again := io.WriteString(a.out, "y")
		if !errors.Is(again, syscall.EPIPE) {
			t.Errorf("a later write: %v", again)
		}
	}
	var failed *stdoutError
	if rows != 2 || w.writes != 2 || !errors.As(err, &failed) {
		t.Errorf("%d rows, %d writes, %v; want 2, 2 and a stdoutError", rows, w.writes, err)
	}
}
