package resp

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandBytes(t *testing.T) {
	t.Parallel()
	got := appendCommand(nil, [][]byte{[]byte("XADD"), []byte("{q}"), []byte("*"), []byte("body"), []byte("a\r\n\x00b"), {}})
	want := "*6\r\n$4\r\nXADD\r\n$3\r\n{q}\r\n$1\r\n*\r\n$4\r\nbody\r\n$5\r\na\r\n\x00b\r\n$0\r\n\r\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var golden = []struct {
	name, wire string
	want       Value
}{
	{"status", "+OK\r\n", Value{Kind: Status, Text: "OK"}},
	{"error", "-ERR no such key\r\n", Value{Kind: Failure, Text: "ERR no such key"}},
	{"integer", ":-42\r\n", Value{Kind: Integer, Int: -42}},
	{"string", "$6\r\na\r\n\x00bc\r\n", Value{Kind: Bulk, Text: "a\r\n\x00bc"}},
	{"empty string", "$0\r\n\r\n", Value{Kind: Bulk}},
	{"missing string", "$-1\r\n", Value{Kind: Null}},
	{"missing array", "*-1\r\n", Value{Kind: Null}},
	{"empty array", "*0\r\n", Value{Kind: Array, Items: []Value{}}},
	{"nested array", "*3\r\n*2\r\n$3\r\n1-0\r\n*-1\r\n:7\r\n-ERR inside\r\n", Value{Kind: Array, Items: []Value{
		{Kind: Array, Items: []Value{{Kind: Bulk, Text: "1-0"}, {Kind: Null}}}, {Kind: Integer, Int: 7}, {Kind: Failure, Text: "ERR inside"},
	}}},
}

func TestReplies(t *testing.T) {
	t.Parallel()
	for _, g := range golden {
		in := bufio.NewReader(strings.NewReader(g.wire + "+NEXT\r\n"))
		got, err := ReadValue(in)
		if err != nil {
			t.Errorf("%s: %v", g.name, err)
			continue
		}
		if diff := cmp.Diff(g.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", g.name, diff)
		}
		if next, err := ReadValue(in); err != nil || next.Text != "NEXT" {
			t.Errorf("%s: the reply after it is %+v, %v", g.name, next, err)
		}
	}
}

// A reply that is cut off at any byte is told from one that never came, and is never taken for a shorter one.
func TestTornReplies(t *testing.T) {
	t.Parallel()
	for _, g := range golden {
		for n := range len(g.wire) {
			_, err := ReadValue(bufio.NewReader(strings.NewReader(g.wire[:n])))
			want := io.ErrUnexpectedEOF
			if n == 0 {
				want = io.EOF
			}
			if !errors.Is(err, want) {
				t.Errorf("%s cut after %d bytes: %v, want %v", g.name, n, err, want)
			}
		}
	}
}

func TestRepliesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{
		"?\r\n", "HTTP/1.1 200 OK\r\n", ":1x\r\n", "$x\r\n", "$-2\r\n", "*-5\r\n", "$99999999999\r\n", "*99999999\r\n", "+OK\n", "$2\r\nabcd\r\n",
		strings.Repeat("*1\r\n", 100), "+" + strings.Repeat("x", 100_000) + "\r\n",
	} {
		if v, err := ReadValue(bufio.NewReader(strings.NewReader(wire))); !errors.Is(err, ErrProtocol) {
			t.Errorf("%.20q was read as %+v, %v", wire, v, err)
		}
	}
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]Options{
		"redis://localhost:7000":          {Addr: "localhost:7000"},
		"redis://localhost":               {Addr: "localhost:6379"},
		"redis://u:p%40ss@[::1]:7000/3":   {Addr: "[::1]:7000", User: "u", Password: "p@ss", DB: 3},
		"redis://:secret@127.0.0.1:7000/": {Addr: "127.0.0.1:7000", Password: "secret"},
	} {
		if got, err := ParseURL(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{
		"", "localhost:6379", "rediss://:secret@localhost", "unix:///secret", "redis://:se%zzcret@h", "redis://:secret@h/x", "redis://h/1?protocol=3&secret",
	} {
		if got, err := ParseURL(raw); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
}
