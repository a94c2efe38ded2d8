package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// The scripts are testdata/script/*.txtar; a new file there is a new test. Each has an empty Redis of its own, and runs beside the
// others. go test -run TestScripts/NAME runs one of them; with -update, cmp writes into a script what it found instead.
//
// A script is written in the language of testscript: a command per line, 'quoted' words, $VARIABLES outside quotes, then files
// between "-- name --" lines. Besides its own commands (cmp, stdout, stderr, grep, stdin, exec, env, wait, ...) there are:
//
//	[!] xstreamq ARG...           runs the program in a process of its own; it must succeed (with !: fail). Its input is what
//	                              stdin set. In the background: exec xstreamq ARG... &name&, then wait name
//	[!] pty [OPTION...] xstreamq ARG...
//	                              the same on a terminal (120x40, TERM=xterm), whose screen is stdout. See pty_test.go
//	exits CODE xstreamq|pty ...   the same, with that very exit code
//	[!] redis [-x FILE] ARG...    a command for Redis, whose answer is stdout, a line for each value. Backslash escapes in words
//	                              (\n \r \t \\ \xNN) give any byte; -x adds a file as the last word. With !: it must be refused,
//	                              and the refusal is stderr
//	server stop|kill|pause|resume|restart
//	signal NAME                   sends INT, TERM or KILL to all that runs in the background
//	await SECONDS PATTERN redis ARG...
//	                              asks Redis again and again until the answer matches
//	normal [REGEXP REPLACEMENT]...
//	                              replaces in stdout and stderr what differs from run to run: see normal_test.go
//	json                          each line of stdout must be one JSON object
//	oneline                       stderr must be exactly one line, which begins with "error: " and is safe on a terminal
//
// XSTREAMQ_URL is the server's URL, and $PORT its port; $TESTDATA is the folder of the real payloads. Neither NO_COLOR nor TERM is set off a pty.

var update = flag.Bool("update", false, "write what cmp finds into the scripts")

// scriptServer is the key of a script's server among its values.
type scriptServer struct{}

func TestScripts(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) == 0 {
		t.Fatal("testdata/script holds no scripts")
	}
	for _, script := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(script), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runScript(t, script)
		})
	}
}

// inScript runs one script as part of a test, not as a test of its own, which would add its name to the path.
type inScript struct{ *testing.T }

func (s inScript) Run(_ string, f func(testscript.T)) { f(s) }
func (inScript) Parallel()                            {}
func (inScript) Verbose() bool                        { return testing.Verbose() }

func runScript(t *testing.T, script string) {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	bin := programFolder(t)
	params := testscript.Params{
		Files:         []string{script},
		UpdateScripts: *update,
		Setup: func(env *testscript.Env) error {
			env.Values[scriptServer{}] = server
			env.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv(asCommand, "1")
			env.Setenv("XSTREAMQ_URL", server.URL())
			_, port, _ := strings.Cut(server.Addr(), ":")
			env.Setenv("PORT", port)
			payloads, err := filepath.Abs("../../testdata")
			env.Setenv("TESTDATA", payloads)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"xstreamq": scriptProgram,
			"pty":      scriptPty,
			"exits":    scriptExits,
			"redis":    scriptRedis,
			"await":    scriptAwait,
			"server":   scriptServerCmd,
			"signal":   scriptSignal,
			"normal":   scriptNormal,
			"json":     scriptJSON,
			"oneline":  scriptOneLine,
		},
	}
	testscript.RunT(inScript{t}, params)
}

// programFolder returns a folder that holds this test binary under the program's name; asCommand makes it the program.
func programFolder(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(binary, filepath.Join(folder, "xstreamq")); err != nil {
		t.Fatal(err)
	}
	return folder
}

func scriptProgram(ts *testscript.TestScript, neg bool, args []string) {
	judge(ts, neg, ts.Exec("xstreamq", args...))
}

// judge compares how a process ended with what the script says.
func judge(ts *testscript.TestScript, neg bool, err error) {
	var exit *exec.ExitError
	switch {
	case err != nil && (!errors.As(err, &exit) || exit.ExitCode() < 0):
		ts.Fatalf("the program did not end by itself: %v", err)
	case err != nil && !neg:
		ts.Fatalf("unexpected failure: %v", err)
	case err == nil && neg:
		ts.Fatalf("unexpected success")
	}
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE xstreamq|pty ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	switch args[1] {
	case "xstreamq":
		err = ts.Exec("xstreamq", args[2:]...)
	case "pty":
		err = runPty(ts, args[2:])
	default:
		ts.Fatalf("usage: exits CODE xstreamq|pty ARG...")
	}
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

func scriptServerCmd(ts *testscript.TestScript, neg bool, args []string) {
	server := ts.Value(scriptServer{}).(*redistest.Server)
	if neg || len(args) != 1 {
		ts.Fatalf("usage: server stop|kill|pause|resume|restart")
	}
	switch args[0] {
	case "stop":
		server.Stop()
	case "kill":
		server.Kill()
	case "pause":
		server.Pause()
	case "resume":
		server.Resume()
	case "restart":
		ts.Check(server.Restart())
	default:
		ts.Fatalf("usage: server stop|kill|pause|resume|restart")
	}
}

func scriptOneLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: oneline")
	}
	if wrong := notOneLine(ts.ReadFile("stderr")); wrong != "" {
		ts.Fatalf("stderr %s", wrong)
	}
	keepStreams(ts)
}

// notOneLine says what keeps a text from being one error on one line.
func notOneLine(text string) string {
	line, rest, ended := strings.Cut(text, "\n")
	switch {
	case !strings.HasPrefix(line, "error: "):
		return fmt.Sprintf("does not begin with %q: %q", "error: ", text)
	case !ended || rest != "":
		return fmt.Sprintf("is not one line: %q", text)
	case printable(line) != line:
		return fmt.Sprintf("is not safe on a terminal: %q", text)
	case strings.Contains(line, "goroutine ") || strings.Contains(line, "panic"):
		return fmt.Sprintf("is a stack trace: %q", text)
	}
	return ""
}

// keepStreams leaves stdout and stderr as they are, for the commands that follow.
func keepStreams(ts *testscript.TestScript) {
	out, errOut := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	fmt.Fprint(ts.Stdout(), out)
	fmt.Fprint(ts.Stderr(), errOut)
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: json")
	}
	if wrong := notJSONLines([]byte(ts.ReadFile("stdout"))); wrong != "" {
		ts.Fatalf("stdout %s", wrong)
	}
	keepStreams(ts)
}

// notJSONLines says what keeps a text from being one JSON object per line, safe on a terminal.
func notJSONLines(text []byte) string {
	for line := range bytes.Lines(text) {
		if bad := notJSONLine(line); bad != "" {
			return fmt.Sprintf("%s: %q", bad, line)
		}
	}
	return ""
}
