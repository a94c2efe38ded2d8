package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// runWith is run with an input.
func runWith(t *testing.T, input io.Reader, args ...string) outcome {
	t.Helper()
	cmd := command(t, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &stdout, &stderr
	code := exitCode(t, cmd.Run())
	return outcome{stdout.String(), stderr.String(), code}
}

// place is a queue of a test, on the server that the tests share or on one of its own.
type place struct {
	url, prefix string
	redis       rueidis.Client
}

func sharedPlace(t *testing.T) place {
	t.Helper()
	return place{redistest.URL(t), redistest.Prefix(t), redistest.Client(t)}
}

func ownPlace(t *testing.T, opts redistest.Options) (place, *redistest.Server) {
	t.Helper()
	server := redistest.Start(t, opts)
	return place{server.URL(), "", redistest.Dial(t, server.URL())}, server
}

// args are those of a command on this place.
func (p place) args(args ...string) []string {
	return append([]string{args[0], "--url", p.url, "--prefix", p.prefix}, args[1:]...)
}

// entries returns the stream of the queue q, or what hangs off it: "" or ".g.dlq".
func (p place) entries(t *testing.T, suffix string) []rueidis.XRangeEntry {
	t.Helper()
	found, err := p.redis.Do(t.Context(), p.redis.B().Xrange().Key(p.prefix+"{q}"+suffix).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (p place) bodies(t *testing.T, suffix string) (ids, bodies []string) {
	t.Helper()
	for _, e := range p.entries(t, suffix) {
		ids, bodies = append(ids, e.ID), append(bodies, e.FieldValues["body"])
	}
	return ids, bodies
}

func TestPublishLines(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	long := strings.Repeat("x", 1<<20)
	got := runWith(t, strings.NewReader("first\r\n\n\x00\xff\xfe\n\r\n"+long+"\nlast"), p.args("publish", "q")...)
	ids, bodies := p.bodies(t, "")
	if diff := cmp.Diff([]string{"first", "\x00\xff\xfe", long, "last"}, bodies); diff != "" {
		t.Errorf("bodies (-want +got):\n%.2000s", diff)
	}
	want := outcome{stdout: strings.Join(ids, "\n") + "\n", stderr: "stored 4 messages, skipped 2 empty lines\n"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// TestPublishManyLines publishes more than one batch holds: the ids and the line numbers must be in the order of the input.
func TestPublishManyLines(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	var input bytes.Buffer
	var want, wantBodies []string
	for n := 1; n <= 12_000; n++ {
		if n%1000 == 0 {
			input.WriteByte('\n')
			continue
		}
		fmt.Fprintf(&input, "body %d\n", n)
		wantBodies = append(wantBodies, "body "+strconv.Itoa(n))
		want = append(want, strconv.Itoa(n))
	}
	got := runWith(t, &input, p.args("publish", "q", "--json")...)
	if got.code != 0 || got.stderr != "stored 11988 messages, skipped 12 empty lines\n" {
		t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
	}
	ids, bodies := p.bodies(t, "")
	if diff := cmp.Diff(wantBodies, bodies); diff != "" {
		t.Errorf("bodies (-want +got):\n%.2000s", diff)
	}
	for i := range want {
		want[i] = fmt.Sprintf(`{"id":"%s","line":%s}`, ids[i], want[i])
	}
	if diff := cmp.Diff(strings.Join(want, "\n")+"\n", got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%.2000s", diff)
	}
}

// TestPublishAsLinesCome waits for the id of each line before it writes the next.
func TestPublishAsLinesCome(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	cmd, stdin, stdout := piped(t, p.args("publish", "q")...)
	var ids []string
	lines := bufio.NewScanner(stdout)
	for n := range 5 {
		fmt.Fprintf(stdin, "line %d\n", n)
		if !lines.Scan() {
			t.Fatalf("no id for line %d: %v", n, lines.Err())
		}
		ids = append(ids, lines.Text())
	}
	stdin.Close()
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d", code)
	}
	stored, _ := p.bodies(t, "")
	if diff := cmp.Diff(stored, ids); diff != "" {
		t.Errorf("ids (-stored +printed):\n%s", diff)
	}
}

// piped starts a command whose input and output are in the test's hands. Its errors are for the test's log.
func piped(t *testing.T, args ...string) (*exec.Cmd, io.WriteCloser, io.Reader) {
	t.Helper()
	cmd := command(t, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdin, stdout
}

func TestPublishLineTooLong(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	input := "a\n\nb\n" + strings.Repeat("x", 101) + "\nc\n"
	got := runWith(t, strings.NewReader(input), p.args("publish", "q", "--max-body", "100")...)
	ids, bodies := p.bodies(t, "")
	if diff := cmp.Diff([]string{"a", "b"}, bodies); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	want := outcome{
		stdout: strings.Join(ids, "\n") + "\n",
		stderr: "error: stored 2 messages; nothing more was sent: line 4 is longer than the 100 bytes of --max-body\n",
		code:   1,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(outcome{})); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// TestPublishServerDies kills Redis in the middle. What the command says of what is stored must be so: what it says is stored is,
// in order; what it says was not sent is not there; and no more than it says may be there or not.
// TestPublishRefused publishes into a full server: no line is uncertain, and what it counts is what is there.
// TestPublishInterrupted sends a signal while it waits for input: it must say what is stored, although nobody closes the input.
// TestPublishInterruptedInABatch sends a signal while an answer of Redis is on its way: it is waited for, so that nothing is unsure.
// TestPublishOutputClosed has nobody read the ids: it must stop, and say what is stored.
// TestPublishCutOff loses the answer of Redis to a line, and ends the command by its time or by a signal: it must end soon, and say
// what is stored and what may be.
func TestPublishOptions(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	file := t.TempDir() + "/body"
	if err := os.WriteFile(file, []byte("two\nlines\r\n\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	inputs := map[string]string{"--file=-": "all\nof it\n"}
	for _, args := range [][]string{
		{"a body", "-H", "tenant=acme", "--header", "note=a=b, c", "-H", "empty="},
		{"", "--json"},
		{"--", "-"},
		{"--file", file},
		{"--file=-"},
		{"past", "--at", "2001-02-03T04:05:06+02:00"},
	} {
		got := runWith(t, strings.NewReader(inputs[args[0]]), p.args(append([]string{"publish", "q"}, args...)...)...)
		if got.code != 0 || got.stderr != "" || got.stdout == "" {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, got.code, got.stdout, got.stderr)
		}
	}
	var got []map[string]string
	for _, e := range p.entries(t, "") {
		got = append(got, e.FieldValues)
	}
	want := []map[string]string{
		{"body": "a body", "h:tenant": "acme", "h:note": "a=b, c", "h:empty": ""},
		{"body": ""}, {"body": "-"}, {"body": "two\nlines\r\n\x00"}, {"body": "all\nof it\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	delayed := runWith(t, strings.NewReader("x\ny\n"), p.args("publish", "q", "--delay", "7d")...)
	scores, err := p.redis.Do(t.Context(), p.redis.B().Zrange().Key(p.prefix+"{q}.delayed").Min("0").Max("-1").Withscores().Build()).AsZScores()
	if err != nil || delayed.code != 0 || len(scores) != 3 {
		t.Fatalf("delayed messages %v, %v, %+v; want the one from the past and two more", scores, err, delayed)
	}
	for i, line := range strings.Fields(delayed.stdout) {
		due := time.UnixMilli(int64(scores[i+1].Score))
		if in := time.Until(due); in < 167*time.Hour || in > 169*time.Hour || !strings.Contains(delayed.stdout, strings.Split(scores[i+1].Member, "\x00")[0]) {
			t.Errorf("%s is due in %s, as %q", line, in, scores[i+1].Member)
		}
	}
}

func TestPublishUsage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"QUEUE is missing":                     {},
		`argument "c" is one too many`:         {"a", "b", "c"},
		"BODY and --file are both given":       {"q", "b", "--file", "f"},
		`--header "a" is not NAME=VALUE`:       {"q", "b", "-H", "a"},
		`--header "=a" is not NAME=VALUE`:      {"q", "b", "-H", "=a"},
		`--header "a" is given twice`:          {"q", "b", "-H", "a=1", "-H", "a=2"},
		`--at "tomorrow" is not a time`:        {"q", "b", "--at", "tomorrow"},
		"--delay and --at are both given":      {"q", "b", "--at", "2030-01-01T00:00:00Z", "--delay", "1s"},
		`"-1s"`:                                {"q", "b", "--delay=-1s"},
		"--max-body must be above 0":           {"q", "b", "--max-body", "0"},
		`invalid argument "x" for "--max-body`: {"q", "b", "--max-body", "x"},
	} {
		got := run(t, append([]string{"publish"}, args...)...)
		if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want 2 and %q", args, got.code, got.stdout, got.stderr, want)
		}
	}
	missing := run(t, "publish", "q", "--file", "no-such-file")
	if missing.code != 1 || !strings.Contains(missing.stderr, "no-such-file") {
		t.Errorf("a missing file: exit code %d, stderr %q", missing.code, missing.stderr)
	}
	p := sharedPlace(t)
	if got := run(t, p.args("publish", "a{b", "x")...); got.code != 2 || !strings.Contains(got.stderr, `"a{b"`) {
		t.Errorf("a bad queue name: exit code %d, stderr %q", got.code, got.stderr)
	}
	if got := run(t, p.args("publish", "q", "too long", "--max-body", "3")...); got.code != 1 || !strings.Contains(got.stderr, "8 bytes") {
		t.Errorf("a body that is too long: exit code %d, stderr %q", got.code, got.stderr)
	}
}

// TestPublishOnTerminal shows on the terminal how far it is and how fast, as lines come, and takes that away at the end.
func TestPublishOnTerminal(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	terminal, device, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	cmd := command(t, p.args("publish", "q")...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, device
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	device.Close()
	moved := regexp.MustCompile(`messages \([1-9]\d*/-, \d+ k?msg/`)
	sent := make(chan int)
	seen := make(chan struct{})
	go func() { // lines, until the display has moved
		n := 0
		for ticks := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-ticks.C:
				fmt.Fprintln(stdin, "a line")
				n++
			case <-seen:
				stdin.Close()
				sent <- n
				return
			}
		}
	}()
	var screen bytes.Buffer
	for page, once := make([]byte, 4096), false; ; {
		n, err := terminal.Read(page)
		screen.Write(page[:n])
		if !once && (err != nil || moved.Match(screen.Bytes())) {
			once = true
			close(seen)
		}
		if err != nil {
			break // EIO: the other side is closed
		}
	}
	n := <-sent
	ids, _ := p.bodies(t, "")
	if code := exitCode(t, cmd.Wait()); code != 0 || stdout.String() != strings.Join(ids, "\n")+"\n" || len(ids) != n {
		t.Errorf("exit code %d, %d lines, %d messages, stdout %.100q", code, n, len(ids), stdout.String())
	}
	if !moved.Match(screen.Bytes()) || !strings.HasSuffix(screen.String(), fmt.Sprintf("\x1b[2K\rstored %d messages\r\n", n)) {
		t.Errorf("the terminal shows %q", screen.String())
	}
}

// TestPublishNeedsLittleMemory pipes 160 MiB through it, and asks what it has used at most.
func TestPublishNeedsLittleMemory(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("NOT TESTED: this system does not tell how much memory a process uses")
	}
	p := sharedPlace(t)
	cmd, stdin, stdout := piped(t, p.args("publish", "q")...)
	const lines = 160
	go func() {
		line := strings.Repeat("x", 1<<20-1) + "\n"
		for range lines {
			_, _ = io.WriteString(stdin, line) // if it ends early, ids are missing
		}
	}()
	ids := bufio.NewScanner(stdout)
	for n := range lines {
		if !ids.Scan() {
			t.Fatalf("%d ids", n)
		}
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d", code)
	}
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if peak == nil {
		t.Fatalf("no VmHWM in %s", status)
	}
	kib, err := strconv.Atoi(string(peak[1]))
	if t.Logf("%d KiB", kib); err != nil || kib > 140<<10 {
		t.Errorf("it used %d KiB for %d MiB of lines, %v", kib, lines, err)
	}
}
