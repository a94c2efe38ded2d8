//go:build unix

package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestPublishFileThatDoesNotEnd reads a body whose end does not come: the command ends by its time or by a signal, and nothing is
// stored.
func TestPublishFileThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	const (
		unread      = ": the body was not read to its end, and nothing was stored\n"
		over        = "error: the time of --timeout is over" + unread
		interrupted = "error: interrupted" + unread
	)
	for name, c := range map[string]struct{ file, timeout, want string }{
		"stdin, timeout":                   {"-", "300ms", over},
		"stdin, signal":                    {"-", "1m", interrupted},
		"a pipe, signal":                   {"pipe", "1m", interrupted},
		"a pipe that nobody opens":         {"alone", "300ms", over},
		"a pipe that nobody opens, signal": {"alone", "1m", interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			args := p.args("publish", "q", "--file", c.file, "--timeout", c.timeout)
			var interrupt time.Duration
			if c.timeout == "1m" {
				interrupt = 100 * time.Millisecond
			}
			got := breakOff(t, args, c.file, interrupt)
			// A signal before the command has begun ends it in another way: a busy machine takes longer to get there.
			for got.code == -1 && interrupt < 10*time.Second {
				interrupt *= 2
				got = breakOff(t, args, c.file, interrupt)
			}
			ids, _ := p.bodies(t, "")
			if got.code != 1 || got.stderr != c.want || len(ids) != 0 {
				t.Errorf("exit code %d, stderr %q, %d messages", got.code, got.stderr, len(ids))
			}
		})
	}
}

// breakOff runs a command that waits for the rest of a body on its standard input, or in a pipe named "pipe" or "alone", the
// latter without anybody at its other end. It sends a signal that long after the start; 0 sends none.
func breakOff(t *testing.T, args []string, file string, interrupt time.Duration) outcome {
	t.Helper()
	cmd := command(t, args...)
	into, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer into.Close()
	if file != "-" {
		if err := syscall.Mkfifo(filepath.Join(cmd.Dir, file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if file == "pipe" {
		pipe, err := os.OpenFile(filepath.Join(cmd.Dir, file), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer pipe.Close()
		into = pipe
	}
	if _, err := into.Write([]byte("half a bo")); err != nil {
		t.Fatal(err)
	}
	if interrupt > 0 {
		time.AfterFunc(interrupt, func() { _ = cmd.Process.Signal(os.Interrupt) })
	}
	defer time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	return outcome{code: exitCode(t, cmd.Wait()), stderr: stderr.String()}
}

// TestPublishStdinClosed has no standard input at all: that is no empty message, and no end of the lines.
func TestPublishStdinClosed(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	for _, args := range [][]string{{"publish", "q", "--file", "-"}, {"publish", "q"}} {
		inner := command(t, p.args(args...)...)
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `exec "$0" "$@" <&-`, inner.Path}, inner.Args[1:]...)...)
		cmd.Env, cmd.Dir = inner.Env, inner.Dir
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		code := exitCode(t, cmd.Run())
		if code != 1 || stderr.String() != "error: the standard input is closed\n" {
			t.Errorf("%q: exit code %d, stderr %q", args, code, stderr.String())
		}
	}
	if ids, _ := p.bodies(t, ""); len(ids) != 0 {
		t.Errorf("%d messages", len(ids))
	}
	// An empty file is an empty message, and an empty input no message.
	for want, args := range map[int][]string{1: {"publish", "q", "--file", "-"}, 0: {"publish", "other"}} {
		if got := run(t, p.args(args...)...); got.code != 0 || strings.Count(got.stdout, "\n") != want {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, got.code, got.stdout, got.stderr)
		}
	}
}

// TestPublishLargestBody allows bodies of no more than Redis can hold: a number above overflowed.
func TestPublishLargestBody(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	file := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(file, []byte("a body"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, most := range []string{"9223372036854775807", "9223372036854775806", "536870913"} {
		for _, args := range [][]string{{"--file", file}, nil} {
			got := runWith(t, strings.NewReader("x\n"), p.args(append([]string{"publish", "q", "--max-body", most}, args...)...)...)
			if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "--max-body is above 536870912, the 512 MiB") {
				t.Errorf("%s %q: exit code %d, stderr %q", most, args, got.code, got.stderr)
			}
		}
	}
	got := run(t, p.args("publish", "q", "--max-body", "536870912", "--file", file)...)
	if _, bodies := p.bodies(t, ""); got.code != 0 || len(bodies) != 1 || bodies[0] != "a body" {
		t.Errorf("exit code %d, stderr %q, messages %q", got.code, got.stderr, bodies)
	}
}
