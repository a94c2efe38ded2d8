package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// list prints the rows of a listing: an aligned table on a terminal, tab-separated values otherwise, one JSON object per line with
// --json. Rows are printed as they come, on a terminal some hundred at a time.
type list struct {
	app    *app
	header []string
	rows   int
	grid   *grid // nil unless on a terminal
}

// newList begins a listing. header names the columns, in lower case.
func (a *app) newList(header ...string) *list {
	l := &list{app: a, header: header}
	if !a.json && isTerminal(a.out) {
		l.grid = newGrid(a, header)
	}
	return l
}

// wrapLast has a terminal show all of the last column, on more lines where it has to, instead of its beginning.
func (l *list) wrapLast() {
	if l.grid != nil {
		l.grid.wraps = true
	}
}

// add prints a row: cells for people, of any bytes, which are escaped; object is what --json prints.
func (l *list) add(object any, cells ...string) error {
	l.rows++
	if l.app.json {
		return l.app.print(object)
	}
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = printable(cell)
	}
	if l.grid != nil {
		return l.grid.add(row)
	}
	_, err := io.WriteString(l.app.out, strings.Join(row, "\t")+"\n")
	return err
}

// close prints what is left. Safe more than once.
func (l *list) close() error {
	if l.grid == nil {
		return nil
	}
	return l.grid.flush()
}

// print writes one JSON object on a line of its own: exact, and safe for a terminal.
func (a *app) print(object any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("encode the JSON object: %w", err)
	}
	_, err := a.out.Write(safeJSON(line.Bytes()))
	return err
}

// safeJSON escapes what printable would, by JSON's own means: it reads the same. Such runes can only be inside strings.
func safeJSON(line []byte) []byte {
	safe := func(r rune) bool { return r < utf8.RuneSelf && r != 0x7f || unicode.IsPrint(r) }
	if bytes.IndexFunc(line, func(r rune) bool { return !safe(r) }) < 0 {
		return line
	}
	out := make([]byte, 0, len(line)+64)
	for _, r := range string(line) {
		switch {
		case safe(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// printable escapes what could move a cursor, break a line or a column, or change how the rest is read. What it returns is safe on a
// terminal.
func printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }) < 0 {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < utf8.RuneSelf && !unicode.IsPrint(r):
			out = appendByte(out, s[i])
		case unicode.IsPrint(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			out = fmt.Appendf(out, `\U%08x`, r)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += size
	}
	return string(out)
}

func appendByte(out []byte, b byte) []byte {
	switch b {
	case '\n':
		return append(out, `\n`...)
	case '\t':
		return append(out, `\t`...)
	case '\r':
		return append(out, `\r`...)
	}
	return fmt.Appendf(out, `\x%02x`, b)
}
