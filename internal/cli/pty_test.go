package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"github.com/rogpeppe/go-internal/testscript"
)

// ptyTimeout ends a program on a terminal that waits for what the script does not give.
const ptyTimeout = 30 * time.Second

// Options of the command pty.
//
//	-in FILE     answers: a line is typed whenever the screen ends with a question, which is "] "
//	-type FILE   is typed at once, and then the end of the input (^D)
//	-size 80x24  of the terminal, instead of 120x40
//	-split       the standard output is a pipe, and becomes stdout; the screen becomes stderr
//
// The screen is what the program wrote, escape sequences included, and what the terminal echoed; lines end with \n.
type ptyOptions struct {
	answers [][]byte
	typed   []byte
	size    pty.Winsize
	split   bool
}

func scriptPty(ts *testscript.TestScript, neg bool, args []string) {
	judge(ts, neg, runPty(ts, args))
}

func ptyFlags(ts *testscript.TestScript, args []string) (o ptyOptions, rest []string) {
	o.size = pty.Winsize{Cols: 120, Rows: 40}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		name := args[0]
		args = args[1:]
		if name == "-split" {
			o.split = true
			continue
		}
		if len(args) == 0 {
			ts.Fatalf("%s needs a value", name)
		}
		switch name {
		case "-in":
			o.answers = bytes.SplitAfter([]byte(ts.ReadFile(args[0])), []byte("\n"))
		case "-type":
			o.typed = append([]byte(ts.ReadFile(args[0])), 4)
		case "-size":
			_, err := fmt.Sscanf(args[0], "%dx%d", &o.size.Cols, &o.size.Rows)
			ts.Check(err)
		default:
			ts.Fatalf("pty has no option %s", name)
		}
		args = args[1:]
	}
	if len(args) == 0 || args[0] != "xstreamq" {
		ts.Fatalf("usage: pty [-in FILE | -type FILE] [-size 80x24] [-split] xstreamq ARG...")
	}
	return o, args[1:]
}

// runPty runs the program on a terminal and returns how it ended.
func runPty(ts *testscript.TestScript, args []string) error {
	o, args := ptyFlags(ts, args)
	terminal, device, err := pty.Open()
	ts.Check(err)
	defer terminal.Close()
	ts.Check(pty.Setsize(terminal, &o.size))
	binary, err := os.Executable()
	ts.Check(err)
	cmd := exec.Command(binary, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = ptyEnv(ts)
	var stdout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = device, device, device
	if o.split {
		cmd.Stdout = &stdout
	}
	if err := cmd.Start(); err != nil {
		device.Close()
		ts.Check(err)
	}
	device.Close()
	defer time.AfterFunc(ptyTimeout, func() { _ = cmd.Process.Kill() }).Stop()
	s := &screen{terminal: terminal, answers: o.answers}
	if len(o.typed) > 0 {
		s.write(o.typed)
	}
	var reading sync.WaitGroup
	reading.Go(s.read)
	err = cmd.Wait()
	reading.Wait()
	shown := strings.ReplaceAll(s.text.String(), "\r\n", "\n")
	if o.split {
		fmt.Fprint(ts.Stdout(), stdout.String())
		fmt.Fprint(ts.Stderr(), shown)
	} else {
		fmt.Fprint(ts.Stdout(), shown)
	}
	ts.Logf("[screen]\n%q", shown)
	return err
}

// ptyEnv is the environment of the script on a terminal of today.
func ptyEnv(ts *testscript.TestScript) []string {
	env := []string{"TERM=xterm"}
	for _, name := range []string{
		"PATH", "HOME", "TMPDIR", "WORK", "TERM", "NO_COLOR", "XSTREAMQ_URL", "XSTREAMQ_PREFIX", asCommand, "GOCOVERDIR", "GORACE",
	} {
		if value := ts.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return append(env, "PWD="+filepath.Clean(ts.MkAbs(".")))
}

// screen gathers what a terminal shows, and answers questions.
type screen struct {
	terminal *os.File
	answers  [][]byte
	text     bytes.Buffer
}

// read ends with an error when the program's side is closed.
func (s *screen) read() {
	page := make([]byte, 4096)
	for {
		n, err := s.terminal.Read(page)
		s.text.Write(page[:n])
		if err != nil {
			return
		}
		if len(s.answers) > 0 && bytes.HasSuffix(s.text.Bytes(), []byte("] ")) {
			s.write(s.answers[0])
			s.answers = s.answers[1:]
		}
	}
}

func (s *screen) write(text []byte) { _, _ = io.Copy(s.terminal, bytes.NewReader(text)) }
