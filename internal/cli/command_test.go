package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
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
	cmd.Env = append(os.Environ(), asCommand+"=1", "XSTREAMQ_URL=redis://127.0.0.1:1", rsmqURLVariable+"=")
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
	defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop() // one that goes on is a failure, not a wait
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
		{"demo", "--prefix", "p:"},
		{"demo", "--url", "redis://h", "--url-file", "f"},
		{"dlq", "no-such-command"},
		{"completion", "no-such-shell"},
		{"help", "no-such-command"},
		{"help", "dlq", "no-such-command"},
		{"ls", "--timeout", "soon"},
		{"ls", "--timeout", "-1s"},
		{"ls", "--cert", "file"},
		{"ls", "one", "two"},
		{"depth", "--exit-empty=perhaps"},
		{"no-such-command"},
		{"version", "extra"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			got := run(t, args...)
			if got.code != 2 || got.stdout != "" || notOneLine(got.stderr) != "" || !strings.Contains(got.stderr, "--help") {
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

// Somebody who has seen enough closes the pipe, as head does: the program ends without a word, with code 1 and not by a signal.
func TestClosedStdout(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"version"}, {"version", "--json"}, {"--version"}, {"--help"}, {"ls", "--url", redistest.URL(t), "--prefix", crowded(t), "--json"},
	} {
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		cmd := command(t, args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = writer, &stderr
		code := exitCode(t, cmd.Run())
		writer.Close()
		if code != 1 || stderr.Len() > 0 {
			t.Errorf("%q: exit code %d, stderr %q; want 1 and nothing", args, code, stderr.String())
		}
	}
}

// A full disk is told.
func TestFullStdout(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("SKIPPED, there is no /dev/full here:", err)
	}
	defer full.Close()
	for _, args := range [][]string{
		{"version"}, {"--version"}, {"--help"}, {"ls", "--help"}, {"help", "ls"}, {"completion", "bash"}, nil, {"dlq"},
		{"health", "--json", "--url", redistest.URL(t), "--prefix", redistest.Prefix(t)},
	} {
		cmd := command(t, args...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &stderr
		code, said := exitCode(t, cmd.Run()), stderr.String()
		if code != 1 || notOneLine(said) != "" || !strings.Contains(said, "standard output") || strings.Contains(said, "--help") {
			t.Errorf("%q: exit code %d, stderr %q", args, code, said)
		}
	}
}

// crowded returns a key prefix under which the registry lists some groups.
func crowded(t *testing.T) string {
	t.Helper()
	prefix := redistest.Prefix(t)
	client := redistest.Client(t)
	for i := range 100 {
		do(t, client, "HSET", prefix+"xstreamq:registry", keys.Member("orders", fmt.Sprintf("g%d", i)), "{}")
	}
	return prefix
}

// An error has one line, and none of its bytes reaches the terminal raw, wherever they come from.
func TestErrorsAreSafeOnTerminals(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"\x1b[2J"}, {"ls", "--\x1b[2J"}, {"ls", "a", "\x1b[2J\n"}, {"depth", "\x1b[2J", "g"}, {"ls", "--url-file", "\x1b[2J\n"}, {"ls", "--timeout", "\x1b"},
		{"help", "\x1b[2J"}, {"dlq", "\u202e"}, {"ls", "--cacert", "no\x9b"}, {"peek", "q\n", "--url", redistest.URL(t)},
	} {
		got := run(t, args...)
		if wrong := notOneLine(got.stderr); wrong != "" || got.code == 0 || got.stdout != "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %s", args, got.code, got.stdout, wrong)
		}
	}
}
