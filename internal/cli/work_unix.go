//go:build unix

package cli

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// inOwnGroup keeps Ctrl-C on the terminal away from a command: it is for the worker, which lets the command end.
func inOwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func terminateGroup(group int) error { return syscall.Kill(-group, syscall.SIGTERM) }

func killGroup(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) } // an error means that it is gone

// awaitGroup waits for children that outlive their command, and then kills them. There is no signal for their end.
func awaitGroup(group int, until time.Time) {
	for syscall.Kill(-group, 0) == nil {
		if !time.Now().Before(until) {
			killGroup(group)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// told reports whether a command ended as one does that was asked to: by a signal, or with the exit code that shells make of it.
func told(state *os.ProcessState) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok {
		return false
	}
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if status.Signaled() && status.Signal() == s || status.Exited() && status.ExitStatus() == 128+int(s) {
			return true
		}
	}
	return false
}

// stopSignals are those that let a worker end in order. One that was started with SIGHUP ignored, as by nohup, goes on ignoring it.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// interruptIgnored: this process was started with SIGINT ignored, as shells do with jobs in the background. That is what Reset goes
// back to. It is asked before anything catches the signal.
var interruptIgnored = signal.Ignored(syscall.SIGINT)

// die ends this process as a signal does that nobody catches, or with the exit code that shells make of one.
func die(by os.Signal) {
	s, ok := by.(syscall.Signal)
	if !ok {
		os.Exit(exitFailed)
	}
	if s == syscall.SIGINT && interruptIgnored {
		os.Exit(128 + int(s))
	}
	signal.Reset(by)
	_ = syscall.Kill(os.Getpid(), s)
}

// readerGone reports that nobody reads any more what is written to a stream.
func readerGone(stream any) bool {
	file, ok := fileOf(stream)
	if !ok {
		return false
	}
	state := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLOUT}}
	n, err := unix.Poll(state, 0)
	return err == nil && n == 1 && state[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}
