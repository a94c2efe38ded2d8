//go:build !unix

package cli

import (
	"os"
	"os/exec"
	"time"
)

// There are no process groups here: the command alone is killed, at once.

func inOwnGroup(*exec.Cmd) {}

func terminateGroup(pid int) error {
	killGroup(pid)
	return nil
}

func killGroup(pid int) {
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
}

func awaitGroup(int, time.Time) {}

// told cannot be known here.
func told(*os.ProcessState) bool { return false }

func stopSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// die ends this process at once.
func die(os.Signal) { os.Exit(exitFailed) }

// readerGone cannot be asked here.
func readerGone(any) bool { return false }
