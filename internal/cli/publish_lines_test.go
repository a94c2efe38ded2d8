package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// readLines reads all lines of an input as "number:body", and says how the reading ended.
func readLines(from io.Reader, longest int) (lines []string, skipped int, err error) {
	r := newLineReader(from, longest)
	for {
		l, err := r.next()
		if err != nil {
			return lines, r.skipped, err
		}
		lines = append(lines, fmt.Sprintf("%d:%s", l.number, l.body))
	}
}

func TestLineReader(t *testing.T) {
	t.Parallel()
	const longest = 5
	for name, c := range map[string]struct {
		input   string
		want    []string
		skipped int
		err     string
	}{
		"nothing":                        {input: ""},
		"the last line has no end":       {input: "a\nb", want: []string{"1:a", "2:b"}},
		"the last line has an end":       {input: "a\nb\n", want: []string{"1:a", "2:b"}},
		"CRLF":                           {input: "a\r\nb\r\n", want: []string{"1:a", "2:b"}},
		"CR alone is part of a body":     {input: "a\rb\nc\r\r\n\rd\ne\r", want: []string{"1:a\rb", "2:c\r", "3:\rd", "4:e\r"}},
		"empty lines":                    {input: "\n\r\na\n\n\nb\n\n", want: []string{"3:a", "6:b"}, skipped: 5},
		"blanks are a body":              {input: " \n\t\n", want: []string{"1: ", "2:\t"}},
		"any bytes":                      {input: "\x00\xff\n\x80\x00", want: []string{"1:\x00\xff", "2:\x80\x00"}},
		"as long as may be":              {input: "12345\n12345\r\n12345", want: []string{"1:12345", "2:12345", "3:12345"}},
		"too long":                       {input: "a\n123456\nb\n", want: []string{"1:a"}, err: "line 2 is longer than the 5 bytes of --max-body"},
		"too long by its CR":             {input: "12345\r", err: "line 1 is longer than the 5 bytes of --max-body"},
		"too long without an end":        {input: "\n123456", skipped: 1, err: "line 2 is longer than the 5 bytes of --max-body"},
		"much too long, without an end":  {input: "a\n" + strings.Repeat("x", 1<<20), want: []string{"1:a"}, err: "line 2 is longer than the 5 bytes of --max-body"},
		"an empty line after a long one": {input: "12345\n\n", want: []string{"1:12345"}, skipped: 1},
	} {
		for _, from := range []io.Reader{strings.NewReader(c.input), iotest.OneByteReader(strings.NewReader(c.input))} {
			got, skipped, err := readLines(from, longest)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: lines (-want +got):\n%s", name, diff)
			}
			if skipped != c.skipped {
				t.Errorf("%s: skipped %d, want %d", name, skipped, c.skipped)
			}
			if c.err == "" && !errors.Is(err, io.EOF) || c.err != "" && err.Error() != c.err {
				t.Errorf("%s: ended with %q, want %q", name, err, c.err)
			}
		}
	}
}

// TestLineReaderLongLines reads lines around the size of its buffer.
func TestLineReaderLongLines(t *testing.T) {
	t.Parallel()
	var input bytes.Buffer
	var want []string
	for i, size := range []int{65534, 65535, 65536, 65537, 131071, 131072, 131073, 1 << 20} {
		body := strings.Repeat("0123456789abcdef", size/16+1)[:size]
		want = append(want, fmt.Sprintf("%d:%s", i+1, body))
		input.WriteString(body + "\r\n")
	}
	got, _, err := readLines(&input, 1<<20)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for i := range max(len(want), len(got)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("line %d differs", i+1)
		}
	}
}

func TestLineReaderNamesTheLineThatCannotBeRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	got, _, err := readLines(io.MultiReader(strings.NewReader("a\nb\nhal"), iotest.ErrReader(broken)), 100)
	if diff := cmp.Diff([]string{"1:a", "2:b"}, got); diff != "" {
		t.Errorf("half a line must not pass for one (-want +got):\n%s", diff)
	}
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "line 3 cannot be read: ") {
		t.Errorf("error %q", err)
	}
}

// TestGatheredHoldsLittle adds without anybody taking: it must stop at the bound of lines, and of bytes.
func TestGatheredHoldsLittle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ size, most int }{
		"short lines": {1, gatherLines},
		"long lines":  {1 << 20, gatherBytes >> 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g, added := newGathered(), 0
				gone := make(chan bool)
				go func() {
					for g.add(line{added + 1, make([]byte, c.size)}) {
						added++
					}
					close(gone)
				}()
				synctest.Wait()
				if added != c.most {
					t.Errorf("%d lines of %d bytes were added with nobody taking them, want %d", added, c.size, c.most)
				}
				if batch, err := g.take(); err != nil || len(batch) != c.most || batch[0].number != 1 {
					t.Errorf("took %d lines, %v; want %d from the first", len(batch), err, c.most)
				}
				synctest.Wait()
				if added != 2*c.most {
					t.Errorf("%d lines in all, want %d: room must let the reader go on", added, 2*c.most)
				}
				g.abandon(errors.New("enough"))
				<-gone
				if batch, err := g.take(); batch != nil || err == nil || err.Error() != "enough" {
					t.Errorf("took %d lines, %v; want none, and why", len(batch), err)
				}
			})
		})
	}
}

// TestGatheredWaitsForNothing takes a line that is there although more may come, and waits where there is none.
func TestGatheredWaitsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGathered()
		taken := make(chan []line, 3)
		go func() {
			defer close(taken)
			for {
				batch, err := g.take()
				if err != nil {
					return
				}
				taken <- batch
			}
		}()
		for number := range 3 {
			synctest.Wait()
			g.add(line{number, nil})
			if batch := <-taken; len(batch) != 1 || batch[0].number != number {
				t.Errorf("took %v, want line %d alone", batch, number)
			}
		}
		g.add(line{3, nil})
		g.finish(io.EOF)
		if batch := <-taken; len(batch) != 1 {
			t.Errorf("took %v, want the line that was there when the input ended", batch)
		}
		if _, open := <-taken; open {
			t.Error("took more than there was")
		}
	})
}
