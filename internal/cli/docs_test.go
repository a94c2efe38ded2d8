package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// docStep is a command of a document with what it prints. One that ends in " &" runs behind the others until "kill %1; wait".
// Hidden ones stand in comments: <!-- run: COMMAND -->.
type docStep struct {
	line    int
	command string
	answer  string
	hidden  bool
}

var docRun = regexp.MustCompile(`^<!-- run: (.*) -->$`)

// docSteps takes the commands of the program out of the console blocks of a document. A command that ends in a backslash goes on
// behind the next "> ".
func docSteps(text string) []docStep {
	var steps []docStep
	inside := false
	for i, line := range strings.Split(text, "\n") {
		command, isCommand := strings.CutPrefix(line, "$ ")
		more, isMore := strings.CutPrefix(line, "> ")
		switch hidden := docRun.FindStringSubmatch(line); {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case hidden != nil:
			steps = append(steps, docStep{line: i + 1, command: hidden[1], hidden: true})
		case inside && isCommand:
			steps = append(steps, docStep{line: i + 1, command: command})
		case inside && isMore && strings.HasSuffix(steps[len(steps)-1].command, "\\"):
			last := &steps[len(steps)-1]
			last.command = strings.TrimSuffix(last.command, "\\") + more
		case inside:
			steps[len(steps)-1].answer += line + "\n"
		}
	}
	return steps
}

// docShell runs the commands of one document, one after the other, in one folder and against one server.
type docShell struct {
	t      *testing.T
	folder string
	env    []string
	ids    map[string]string // of the document, and what they are here
	behind []*exec.Cmd
}

func newDocShell(t *testing.T) *docShell {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	s := &docShell{t: t, folder: t.TempDir(), ids: map[string]string{}}
	if err := os.Symlink(filepath.Join(root, "testdata"), filepath.Join(s.folder, "testdata")); err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), asCommand+"=1", "XSTREAMQ_URL="+server.URL(), "NO_COLOR=1", "TERM=xterm",
		"PATH="+programFolder(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(s.stop)
	return s
}

func (s *docShell) command(line string) *exec.Cmd {
	cmd := exec.CommandContext(s.t.Context(), "sh", "-c", line)
	cmd.Dir, cmd.Env = s.folder, s.env
	return cmd
}

// stop ends what runs in the background.
func (s *docShell) stop() {
	for _, cmd := range s.behind {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}
	s.behind = nil
}

// play runs a step and compares what it prints, on a terminal.
func (s *docShell) play(step docStep) {
	s.t.Helper()
	line := idPattern.ReplaceAllStringFunc(step.command, func(id string) string {
		if here, ok := s.ids[id]; ok {
			return here
		}
		return id
	})
	behind, isBehind := strings.CutSuffix(line, " &")
	switch {
	case line == "kill %1; wait":
		s.stop()
	case isBehind:
		cmd := s.command("exec " + behind)
		if err := cmd.Start(); err != nil {
			s.t.Fatal(err)
		}
		s.behind = append(s.behind, cmd)
	case step.hidden:
		if out, err := s.command(line).CombinedOutput(); err != nil {
			s.t.Fatalf("line %d: %s: %v\n%s", step.line, line, err, out)
		}
	default:
		s.compare(step, s.onTerminal(line))
	}
}

// onTerminal returns what a command prints: on a terminal, and then what it says besides.
func (s *docShell) onTerminal(line string) string {
	s.t.Helper()
	terminal, device, err := pty.Open()
	if err != nil {
		s.t.Fatal(err)
	}
	defer terminal.Close()
	if err := pty.Setsize(terminal, &pty.Winsize{Cols: 130, Rows: 40}); err != nil {
		s.t.Fatal(err)
	}
	cmd := s.command(line)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = device, &said
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	device.Close()
	// Reading a terminal whose other side is closed ends with EIO.
	screen, err := io.ReadAll(terminal)
	if err != nil && !errors.Is(err, syscall.EIO) {
		s.t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code is told by what it says
	return strings.ReplaceAll(string(screen), "\r\n", "\n") + said.String()
}

// docVolatile differs from run to run, besides what the scripts know.
var docVolatile = regexp.MustCompile(`\d+(\.\d+)? MiB`)

func (s *docShell) compare(step docStep, got string) {
	s.t.Helper()
	plain := func(text string) string {
		n := normalizer{seen: map[string]string{}, count: map[string]int{}}
		return docVolatile.ReplaceAllString(n.normal(text), "SIZE")
	}
	if diff := cmp.Diff(plain(step.answer), plain(got)); diff != "" {
		s.t.Errorf("line %d: %s (-text +answer):\n%s\nthe answer:\n%s", step.line, step.command, diff, got)
		return
	}
	written := idPattern.FindAllString(step.answer, -1)
	for i, here := range idPattern.FindAllString(got, -1) {
		if known, ok := s.ids[written[i]]; ok && known != here {
			s.t.Errorf("line %d: %s: %s stood for %s before, and now for %s", step.line, step.command, written[i], known, here)
		}
		s.ids[written[i]] = here
	}
}

// The commands that the documents show are what the program does.
func TestDocumentedTranscripts(t *testing.T) {
	t.Parallel()
	for _, document := range []string{"README.md", "docs/operations.md"} {
		t.Run(document, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../" + document)
			if err != nil {
				t.Fatal(err)
			}
			steps := docSteps(string(text))
			if len(steps) < 5 {
				t.Fatalf("%d steps", len(steps))
			}
			shell := newDocShell(t)
			for _, step := range steps {
				shell.play(step)
			}
		})
	}
}

// docTable returns two columns of the table of a document whose first column is headed so, without backquotes.
func docTable(t *testing.T, document, headed string) (rows [][2]string) {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| "+headed+" |")
	_, table, _ = strings.Cut(table, "|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.SplitN(strings.Trim(strings.TrimSpace(row), "| "), " | ", 2)
		rows = append(rows, [2]string{strings.Trim(cells[0], "`"), cells[1]})
	}
	if !found || len(rows) == 0 {
		t.Fatalf("%s has no table headed %q", document, headed)
	}
	return rows
}

// The README lists every command.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&app{})
	root.InitDefaultCompletionCmd()
	var commands []string
	for _, cmd := range root.Commands() {
		switch {
		case cmd.Hidden, cmd.Name() == "help":
		case cmd.Name() == "dlq":
			for _, sub := range cmd.Commands() {
				commands = append(commands, "dlq "+sub.Name())
			}
		default:
			commands = append(commands, cmd.Name())
		}
	}
	var listed []string
	for _, row := range docTable(t, "README.md", "command") {
		listed = append(listed, row[0])
	}
	slices.Sort(commands)
	slices.Sort(listed)
	if diff := cmp.Diff(commands, listed); diff != "" {
		t.Errorf("commands (-code +README.md):\n%s", diff)
	}
}

// The README lists the exit codes.
func TestDocumentedExitCodes(t *testing.T) {
	t.Parallel()
	var codes []string
	for _, code := range []int{exitOK, exitFailed, exitUsage, exitEmpty} {
		codes = append(codes, strconv.Itoa(code))
	}
	var listed []string
	for _, row := range docTable(t, "README.md", "exit code") {
		listed = append(listed, row[0])
	}
	if diff := cmp.Diff(codes, listed); diff != "" {
		t.Errorf("exit codes (-code +README.md):\n%s", diff)
	}
}

// operations.md lists every check of doctor.
func TestDocumentedChecks(t *testing.T) {
	t.Parallel()
	sources, err := filepath.Glob("doctor*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?:const check(?:, do)? = |\b(?:ok|note|warning|problem)\()"([^"]+)"`)
	checks := map[string]bool{}
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			checks[match[1]] = true
		}
	}
	listed := map[string]bool{}
	for _, row := range docTable(t, "docs/operations.md", "check") {
		listed[row[0]] = true
	}
	if diff := cmp.Diff(checks, listed); diff != "" {
		t.Errorf("checks (-code +docs/operations.md):\n%s", diff)
	}
}

// Command lines that the documents mention in passing have commands, arguments and flags that exist.
func TestDocumentedCommandLines(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, document := range []string{"README.md", "docs/operations.md", "docs/contract.md", "docs/message-path.md"} {
		text, err := os.ReadFile("../../" + document)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile("`xstreamq ([^`]+)`").FindAllStringSubmatch(string(text), -1) {
			checked++
			root, _ := newRoot(&app{})
			cmd, args, err := root.Find(strings.Fields(match[1]))
			if err == nil {
				err = cmd.ParseFlags(args)
			}
			if left := cmd.Flags().Args(); err == nil && len(left) > 0 {
				err = cmd.ValidateArgs(left)
			}
			if err != nil || !cmd.Runnable() {
				t.Errorf("%s: xstreamq %s: %v", document, match[1], err)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d command lines found", checked)
	}
}
