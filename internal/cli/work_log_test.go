//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// TestWorkLogIsSafe has a command in the log whose name would move the cursor and turn the text around: it is exact JSON all the same.
func TestWorkLogIsSafe(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	script := filepath.Join(t.TempDir(), "c\u009b2J\x7f\u202e\U000e0001\t")
	if err := os.WriteFile(script, []byte("\x7fELF"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--json"}, nil} {
		got := run(t, p.args(append([]string{"work", "q", "--group", "g", "--max", "1"}, append(flags, "--", script)...)...)...)
		if i := strings.IndexFunc(got.stderr, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q: a terminal gets %q", flags, got.stderr[max(0, i-10):])
		}
		if flags == nil {
			continue
		}
		var reason string
		for line := range strings.Lines(got.stderr) {
			var entry struct{ Msg, Reason string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "draining" {
				reason = entry.Reason
			}
		}
		if !strings.Contains(reason, script) {
			t.Errorf("reason %q in %s", reason, got.stderr)
		}
	}
}
