package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// localProcess is one run of a server binary.
type localProcess struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was waited for
}

// startLocal runs the binary with its output appended to the file logPath.
func startLocal(binary string, args []string, dir, logPath string) (process, error) {
	output, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the server's log: %w", err)
	}
	defer output.Close()

	p := &localProcess{cmd: exec.Command(binary, args...), done: make(chan struct{})}
	p.cmd.Dir = dir
	p.cmd.Stdout = output
	p.cmd.Stderr = output
	p.cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return p, nil
}

// run starts the process and waits for it on one OS thread: the kernel sends the parent-death signal when the thread
// that forked ends, not when its process does, so the thread has to stay as long as the child.
func (p *localProcess) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	_ = p.cmd.Wait() // how a server ends is told by its log; the tests kill it on purpose
	close(p.done)
}

func (p *localProcess) pid() int { return p.cmd.Process.Pid }

func (p *localProcess) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal reaches a process that has ended as little as one that is about to; neither is an error here.
func (p *localProcess) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

func (p *localProcess) kill() {
	p.signal(syscall.SIGKILL)
	<-p.done
}

// stop asks for an orderly end, and kills a process that does not come to one.
func (p *localProcess) stop() {
	p.signal(syscall.SIGCONT) // a paused process would not see the next signal
	p.signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

// pause returns once the process no longer runs: signals arrive a little later than kill(2) returns.
func (p *localProcess) pause() {
	p.signal(syscall.SIGSTOP)
	poll(stopTimeout, func() bool { return !p.alive() || stopped(p.pid()) })
}

func (p *localProcess) resume() { p.signal(syscall.SIGCONT) }

// binaries are the servers that can be started, the preferred one first.
var binaries = []string{"redis-server", "valkey-server"}

func findBinary() (string, error) {
	for _, name := range binaries {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("neither redis-server nor valkey-server is on PATH: %w", exec.ErrNotFound)
}
