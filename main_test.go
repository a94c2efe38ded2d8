package xstreamq_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// processes are what this binary can be instead of a test run: workers that tests kill, stop and start as real processes.
var processes = map[string]func(args []string) int{}

const processEnv = "XSTREAMQ_TEST_PROCESS"

func TestMain(m *testing.M) {
	if name := os.Getenv(processEnv); name != "" {
		run, ok := processes[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "no process %q\n", name)
			os.Exit(2)
		}
		os.Exit(run(os.Args[1:]))
	}
	redistest.Main(m)
}

// process is a child process of a test.
type process struct {
	*exec.Cmd
	Lines  *bufio.Scanner // its standard output
	stdout io.ReadCloser

	once  sync.Once
	ended error
}

// Wait waits for the end of the process. The clean-up of spawn may do so at the same time.
func (p *process) Wait() error {
	p.once.Do(func() { p.ended = p.Cmd.Wait() })
	return p.ended
}

// spawn starts this binary as one of processes. It is killed at the end of the test at the latest; its standard error goes to
// the test's.
func spawn(t *testing.T, name string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), processEnv+"="+name)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd, Lines: bufio.NewScanner(stdout), stdout: stdout}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = p.Wait()
	})
	return p
}
