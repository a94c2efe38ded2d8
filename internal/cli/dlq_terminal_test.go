package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// TestConfirmedIsWhatWasShown has another message die while the question is on the screen: the answer is not for that one.
func TestConfirmedIsWhatWasShown(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"purge", "redrive"} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			d := newDeadGroup(t, 10)
			cmd := d.command(t, redistest.URL(t), "dlq", verb, "q", "g")
			terminal, err := pty.Start(cmd)
			if err != nil {
				t.Fatal(err)
			}
			defer terminal.Close()
			screen := readUntil(t, terminal.Read, "[y/N] ")
			fillDead(t, d.client, d.key(".g.dlq"), 1)
			if _, err := terminal.WriteString("yes\n"); err != nil {
				t.Fatal(err)
			}
			screen += readUntil(t, terminal.Read, "")
			if err := cmd.Wait(); err != nil || !strings.Contains(screen, fmt.Sprintf("%s of queue q, group g", deadLetters(10))) {
				t.Errorf("%v, the screen shows %q", err, screen)
			}
			if left := d.length(t, ".g.dlq"); left != 1 {
				t.Errorf("%d dead letters are left, want the one that died last", left)
			}
		})
	}
}

// readUntil reads what a terminal shows up to a text, or to its end.
func readUntil(t *testing.T, read func([]byte) (int, error), text string) string {
	t.Helper()
	var shown bytes.Buffer
	page := make([]byte, 1024)
	for text == "" || !strings.Contains(shown.String(), text) {
		n, err := read(page)
		shown.Write(page[:n])
		if err != nil && text != "" {
			t.Fatalf("the terminal is closed, it showed %q", shown.String())
		}
		if err != nil {
			break
		}
	}
	return shown.String()
}
