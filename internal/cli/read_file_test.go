package cli

import (
	"bytes"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// pipe returns the name of a pipe.
func pipe(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A pipe that nobody writes to is waited for until --timeout, whatever it is to hold.
func TestPipeHoldsNobody(t *testing.T) {
	t.Parallel()
	url, name := redistest.URL(t), pipe(t)
	_, cert, _ := newAuthority(t).issue(t, "127.0.0.1")
	for _, args := range [][]string{
		{"ls", "--url-file", name},
		{"demo", "--url-file", name},
		{"ls", "--url", url, "--cacert", name},
		{"ls", "--url", url, "--key", cert, "--cert", name},
		{"ls", "--url", url, "--cert", cert, "--key", name},
	} {
		began := time.Now()
		got := run(t, append(args, "--timeout", "200ms")...)
		if took := time.Since(began); got.code != 1 || got.stdout != "" || notOneLine(got.stderr) != "" || took > 4*time.Second {
			t.Errorf("%q: %+v after %s", args, got, took)
		}
		for _, part := range []string{args[len(args)-2], name, "200ms (--timeout)", "pipe"} {
			if !strings.Contains(got.stderr, part) {
				t.Errorf("%q: no %q in %q", args, part, got.stderr)
			}
		}
	}
}

// Nor does it keep a signal from ending the command.
func TestPipeIsInterrupted(t *testing.T) {
	t.Parallel()
	name := pipe(t)
	cmd := command(t, "ls", "--url-file", name)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(name, os.O_WRONLY, 0) // once the command reads
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
	if code := exitCode(t, cmd.Wait()); code != 1 || stderr.String() != "error: interrupted\n" {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}

// health connects twice, and what came out of a pipe does not come again.
func TestPipeIsReadOnce(t *testing.T) {
	t.Parallel()
	name := pipe(t)
	wrote := make(chan error, 1)
	url := redistest.URL(t)
	go func() { wrote <- os.WriteFile(name, []byte(url), 0o600) }()
	if got := run(t, "health", "--url-file", name, "--prefix", redistest.Prefix(t), "--timeout", "10s"); got.code != 0 || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

func TestEndlessFile(t *testing.T) {
	t.Parallel()
	const device = "/dev/zero"
	if _, err := os.Stat(device); err != nil {
		t.Skip("SKIPPED:", err)
	}
	for _, args := range [][]string{{"--url-file", device}, {"--cacert", device}, {"--cert", device, "--key", device}} {
		_, err := flagged(t, args...).options(t.Context())
		if err == nil || !strings.Contains(err.Error(), args[0]) || !strings.Contains(err.Error(), device) || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// Some editors put a mark before the text.
func TestByteOrderMarkOfPEM(t *testing.T) {
	t.Parallel()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newAuthority(t).cert.Raw})
	opts, err := flagged(t, "--cacert", file(t, "\ufeff"+string(block))).options(t.Context())
	if err != nil || opts.TLSConfig == nil {
		t.Errorf("%v", err)
	}
}
