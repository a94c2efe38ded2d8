package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// What --help says fits on a terminal of 100 columns.
func TestHelpIsNarrow(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&app{})
	seen := 0
	eachCommand(root, func(cmd *cobra.Command) {
		var out bytes.Buffer
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		seen++
		for line := range strings.Lines(out.String()) {
			line = strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        ")
			if n := utf8.RuneCountInString(line); n > helpWidth {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
	})
	if seen < 30 {
		t.Errorf("only %d commands", seen)
	}
}
