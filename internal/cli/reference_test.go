package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func pages(t *testing.T, folder string) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(name)] = string(text)
	}
	return found
}

// The reference in the repository is that of the commands, and says nothing of the machine that wrote it.
func TestReferenceIsCurrent(t *testing.T) {
	t.Setenv(urlVariable, "redis://zork:1")
	t.Setenv(prefixVariable, "zork:")
	t.Setenv("HOME", "/zork")
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "xstreamq_gone.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := WriteReference(folder); err != nil {
		t.Fatal(err)
	}
	want := pages(t, folder)
	if len(want) < len(everyCommand) {
		t.Errorf("%d pages for %d commands", len(want), len(everyCommand))
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		if strings.Contains(text, "zork") || len(host) > 3 && strings.Contains(text, host) {
			t.Errorf("%s says something of this machine", name)
		}
	}
	if diff := cmp.Diff(want, pages(t, "../../docs/cli")); diff != "" {
		t.Errorf("docs/cli is not current, run go generate ./...; -want +got:\n%s", diff)
	}
}

// Each command has a long help, and an example that begins with the program's name.
func TestHelpIsComplete(t *testing.T) {
	t.Parallel()
	for name := range everyCommand {
		root, _ := newRoot(&app{})
		cmd, _, err := root.Find(strings.Fields(name))
		if err != nil {
			t.Fatal(err)
		}
		if len(cmd.Long) < 80 || !strings.Contains(cmd.Example, "xstreamq "+name) || cmd.Short == "" {
			t.Errorf("%s: the help has no example, or says too little", name)
		}
		if !strings.Contains(cmd.Long, "xit") && !strings.Contains(root.Long, "Exit codes") {
			t.Errorf("%s: the help does not say the exit codes", name)
		}
	}
}
