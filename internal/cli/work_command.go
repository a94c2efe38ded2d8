package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// commandLine is the command that handles messages.
type commandLine struct {
	path           string
	args           []string // the first is its name as it was given
	env            []string
	stdout, stderr io.Writer
	killAfter      time.Duration // from SIGTERM to SIGKILL

	starter *starter

	mu     sync.Mutex
	groups map[int]bool // process groups that run, by the id of their leader
}

// newCommandLine finds the command. Close it.
func newCommandLine(args []string, stdout, stderr io.Writer, killAfter time.Duration) (*commandLine, error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, fmt.Errorf("the command cannot be run: %w", err)
	}
	return &commandLine{
		path: path, args: args, env: inherited(os.Environ()), stdout: stdout, stderr: stderr, killAfter: killAfter,
		starter: newStarter(), groups: map[int]bool{},
	}, nil
}

// close ends what still runs, where commands end with their worker.
func (c *commandLine) close() { c.starter.close() }

// exit is how a run of the command ended.
type exit struct {
	state *os.ProcessState
	said  string // the end of its standard error
}

// text is what goes into the error of a message.
func (e exit) text() string {
	if e.said == "" {
		return e.state.String()
	}
	return e.state.String() + ": " + e.said
}

// errNotStarted: there was no run of the command.
var errNotStarted = errors.New("the command cannot be started")

// run runs the command with a body on its standard input, and calls started once it runs. When ctx ends, its process group gets
// SIGTERM, and killAfter later SIGKILL. How the command ends is no error; that it could not start is errNotStarted.
func (c *commandLine) run(ctx context.Context, body []byte, env []string, started func()) (exit, error) {
	cmd := exec.CommandContext(ctx, c.path, c.args[1:]...)
	cmd.Args[0] = c.args[0]
	cmd.Env = slices.Concat(c.env, env)
	cmd.Stdin = bytes.NewReader(body)
	cmd.Stdout = c.stdout
	said := &tail{to: c.stderr}
	cmd.Stderr = said
	cmd.WaitDelay = c.waitDelay()
	inOwnGroup(cmd)
	endWithParent(cmd)
	var cut time.Time
	cmd.Cancel = func() error {
		cut = time.Now()
		time.AfterFunc(c.killAfter, func() { c.kill(cmd.Process.Pid) })
		return terminateGroup(cmd.Process.Pid)
	}
	if err := c.start(cmd); err != nil {
		return exit{}, fmt.Errorf("%w: %w", errNotStarted, err)
	}
	started()
	_ = cmd.Wait() // only the exit code counts: not whether it read its input, or who still holds its output
	if !cut.IsZero() {
		awaitGroup(cmd.Process.Pid, cut.Add(c.killAfter))
	}
	c.forget(cmd.Process.Pid)
	return exit{cmd.ProcessState, said.text()}, nil
}

// waitDelay is how long after its end, or after SIGTERM, others may keep the command's standard error open.
func (c *commandLine) waitDelay() time.Duration {
	return max(c.killAfter+100*time.Millisecond, time.Second)
}

func (c *commandLine) start(cmd *exec.Cmd) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.starter.do(cmd.Start); err != nil {
		return err
	}
	c.groups[cmd.Process.Pid] = true
	return nil
}

// forget notes the end of a command.
func (c *commandLine) forget(group int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, group)
}

// kill kills a group, unless its command has ended: the number may be another's by now.
func (c *commandLine) kill(group int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups[group] {
		killGroup(group)
	}
}

// killAll kills every group. No command is started afterwards: the lock is kept.
func (c *commandLine) killAll() {
	c.mu.Lock()
	for group := range c.groups {
		killGroup(group)
	}
}

// tailSize is how much of a command's standard error goes into the error of its message.
const tailSize = 1 << 10

// tail passes on what is written to it, and keeps the end.
type tail struct {
	to   io.Writer
	last []byte
	cut  bool
}

// Write never fails: that nobody reads our standard error is no concern of the command.
func (t *tail) Write(p []byte) (int, error) {
	_, _ = t.to.Write(p)
	t.last = append(t.last, p[max(0, len(p)-tailSize):]...)
	if over := len(t.last) - tailSize; over > 0 || len(p) > tailSize {
		t.last, t.cut = append(t.last[:0], t.last[max(over, 0):]...), true
	}
	return len(p), nil
}

// text is the end of what was written, without a piece of a character, or blanks around it.
func (t *tail) text() string {
	last := t.last
	for i := 0; t.cut && i < utf8.UTFMax && len(last) > 0 && !utf8.RuneStart(last[0]); i++ {
		last = last[1:]
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(last), "?"))
}
