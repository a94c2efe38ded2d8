//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestProgressOnTerminal(t *testing.T) {
	t.Parallel()
	for total, want := range map[int]string{10: "(10/10", 0: "(10"} {
		screen := onTerminal(t, 100, "", func(a *app) {
			p := a.newProgress("dead letters", total)
			for i := 1; i <= 9; i++ {
				p.set(i)
			}
			fmt.Fprintln(a.out, "a row")
			time.Sleep(barInterval) // less often than that it does not draw
			p.set(10)
			p.close()
			p.close()
			p.set(3)
			fmt.Fprintln(a.out, "the end")
		})
		for _, part := range []string{"dead letters", want, "a row\n"} {
			if !strings.Contains(screen, part) {
				t.Errorf("total %d: the screen shows no %q: %q", total, part, screen)
			}
		}
		// The bar is taken away before anything else is written where it is.
		for _, part := range []string{"a row", "the end"} {
			before, _, _ := strings.Cut(screen, part)
			if !strings.HasSuffix(before, "\x1b[2K\r") && !strings.HasSuffix(before, "\r") {
				t.Errorf("total %d: %q follows %q", total, part, before)
			}
		}
	}
}

func TestProgressElsewhere(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &app{err: &out}
	p := a.newProgress("x", 10)
	p.set(10)
	p.close()
	if out.Len() > 0 {
		t.Errorf("got %q", out.String())
	}
}
