//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// TestDemoInterrupted sends a signal while workers run: they are drained, the keys removed, and nothing is left behind.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			cmd := command(t, "demo", "--json", "--url", redistest.URL(t))
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			output, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			worker := 0
			for lines := bufio.NewScanner(output); lines.Scan(); {
				stderr.WriteString(lines.Text() + "\n")
				if match := process.FindStringSubmatch(lines.Text()); match != nil {
					worker, _ = strconv.Atoi(match[1])
				}
				if strings.HasPrefix(lines.Text(), "started worker-1") {
					if err := cmd.Process.Signal(sig); err != nil {
						t.Fatal(err)
					}
				}
			}
			if code := exitCode(t, cmd.Wait()); code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "error: interrupted\n") {
				t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, stdout.String(), stderr.String())
			}
			noKeys(t, stderr.String())
			if worker == 0 || syscall.Kill(worker, 0) != syscall.ESRCH {
				t.Errorf("the worker process %d is still there", worker)
			}
		})
	}
}

var process = regexp.MustCompile(`started worker-4, process (\d+)`)

// TestDemoOnTerminal runs it with stderr on a terminal and stdout in a pipe: the bar is on the one, the tables are on the other.
func TestDemoOnTerminal(t *testing.T) {
	t.Parallel()
	terminal, device, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	cmd := command(t, "demo")
	cmd.Env = append(cmd.Env, "TERM=xterm")
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, device
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	device.Close()
	// Reading a terminal whose other side is closed ends with EIO.
	screen, err := io.ReadAll(terminal)
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	for _, want := range []string{
		"group indexer", "group notifier", "published", "handled", "retried", "recovered", "failed", "undecodable", "released",
		"every message is accounted for: 329 payloads",
	} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("stdout has no %q:\n%s", want, stdout.String())
		}
	}
	for _, want := range []string{"messages 100% |████", "(662/662)", "\r", "killed worker-4 in mid-handler",
		"drained worker-1 in mid-run"} {
		if !bytes.Contains(screen, []byte(want)) {
			t.Errorf("the terminal shows no %q:\n%q", want, screen)
		}
	}
	if !regexp.MustCompile(`delayed by 2s came after [2-9]`).Match(screen) {
		t.Errorf("the delayed message came too early, or not at all:\n%q", screen)
	}
	if bytes.Contains(screen, []byte(" done\r\n")) {
		t.Errorf("the terminal shows the lines meant for pipes:\n%q", screen)
	}
}
