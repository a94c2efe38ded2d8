package cli

import (
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestWorkOutputFull has no room for what the commands print. That must not be taken for failures of theirs.
func TestWorkOutputFull(t *testing.T) {
	t.Parallel()
	for name, shell := range map[string]string{
		"the device":    `exec "$0" "$@" >/dev/full`,
		"a file system": `mount -t tmpfs -o size=256k none "$SMALL" || exit 99; exec "$0" "$@" >>"$SMALL/out"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			for range 3 {
				p.send(t, strings.Repeat("x", 200_000))
			}
			inner := p.work(t, `exec cat`, "--retries", "0", "--concurrency", "1", "--backoff", "1h", "--exit-when-empty")
			args := []string{"sh", "-c", shell, inner.Path}
			if name == "a file system" {
				args = append([]string{"unshare", "--user", "--map-root-user", "--mount"}, args...)
			}
			cmd := exec.CommandContext(t.Context(), args[0], append(args[1:], inner.Args[1:]...)...) //nolint:gosec // all of it is ours
			cmd.Dir, cmd.Env = inner.Dir, slices.Concat(inner.Env, []string{"SMALL=" + t.TempDir()})
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			err := cmd.Run()
			if log := stderr.String(); strings.Contains(log, "unshare: ") || strings.Contains(log, "mount: ") || cmd.ProcessState == nil {
				t.Skipf("SKIPPED, no small file system can be mounted here: %v %s", err, log)
			}
			now := p.counters(t)
			if code := exitCode(t, err); code != 1 || now.dead+now.pending != 0 || now.backoff != 1 ||
				!strings.HasSuffix(stderr.String(), "error: there is no room left for the standard output\n") {
				t.Errorf("exit code %d, messages %+v, stderr %s", code, now, stderr.String())
			}
		})
	}
}
