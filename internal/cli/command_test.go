package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// command returns the command line with arguments, to be run in a process of its own, in an empty folder.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), asCommand+"=1", "XSTREAMQ_URL=redis://127.0.0.1:1")
	return cmd
}

// outcome is what a command left behind.
type outcome struct {
	stdout, stderr string
	code           int
}

func run(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code := exitCode(t, cmd.Run())
	return outcome{stdout.String(), stderr.String(), code}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

func TestWrongCommandLine(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"demo", "--no-such-flag"},
		{"demo", "--json=perhaps"},
		{"demo", "--url"},
		{"demo", "--url="},
		{"demo", "extra"},
		{"no-such-command"},
		{"version", "extra"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			got := run(t, args...)
			if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "error: ") || !strings.Contains(got.stderr, "--help") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want 2, nothing, and an error that names --help", got.code, got.stdout, got.stderr)
			}
		})
	}
}

func TestVersionAndHelp(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"xstreamq":   {"version"},
		"version":    {"--version"},
		"completion": nil,
		"--json":     {"demo", "--help"},
	} {
		got := run(t, args...)
		if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want 0 and %q", args, got.code, got.stdout, got.stderr, want)
		}
		if strings.Contains(got.stdout, "demo-worker") {
			t.Errorf("%q shows the hidden command", args)
		}
	}
}
