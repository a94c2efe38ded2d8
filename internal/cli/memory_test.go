//go:build linux

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// peakEnv names a file to which a command of the tests writes, when it ends, the most memory that it had at once. The usage that wait
// tells is at least that of the process which started it.
const peakEnv = "XSTREAMQ_TEST_PEAK"

// notePeak is called when a command of the tests ends.
func notePeak() {
	name := os.Getenv(peakEnv)
	if name == "" {
		return
	}
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		err = os.WriteFile(name, status, 0o600)
	}
	if err != nil {
		panic(err)
	}
}

// watchMemory returns a func that says, once the command has ended, how many MiB it had at once at most.
func watchMemory(t *testing.T, cmd *exec.Cmd) (peak func() int) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "peak")
	cmd.Env = append(cmd.Env, peakEnv+"="+name)
	return func() int {
		t.Helper()
		status, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		kib, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
		if err != nil {
			t.Fatalf("no VmHWM in %s: %v", status, err)
		}
		return kib >> 10
	}
}
