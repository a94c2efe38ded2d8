package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// brokenOff is what publish says when its server dies: a batch on its way may have been stored, one that
// found the server gone was not.
var brokenOff = regexp.MustCompile(`error: stored (\d+) messages; lines? (\d+)(?: to (\d+))? (may have been stored or not|were not stored|was not stored), and nothing after line (\d+) was sent: `)

func TestPublishServerDies(t *testing.T) {
	t.Parallel()
	p, server := ownPlace(t, redistest.Options{AOF: "no"})
	cmd := command(t, p.args("publish", "q")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // until the command ends, which closes the pipe
		for n := 1; ; n++ {
			if _, err := fmt.Fprintf(stdin, "%d\n", n); err != nil {
				return
			}
		}
	}()
	var ids []string
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if ids = append(ids, lines.Text()); len(ids) == 3000 {
			server.Kill()
		}
	}
	if code := exitCode(t, cmd.Wait()); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	said := brokenOff.FindStringSubmatch(stderr.String())
	if said == nil {
		t.Fatalf("stderr does not say what was stored: %s", stderr.String())
	}
	if said[3] == "" {
		said[3] = said[2]
	}
	number := func(i int) int { n, _ := strconv.Atoi(said[i]); return n }
	count, first, last, sent := number(1), number(2), number(3), number(5)
	if count != len(ids) || first != count+1 || last != sent {
		t.Errorf("it says %q, and printed %d ids", said[0], len(ids))
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	stored, bodies := p.bodies(t, "")
	most := last
	if said[4] != "may have been stored or not" {
		most = count
	}
	if len(stored) < count || len(stored) > most {
		t.Fatalf("%d messages are stored; it said %q", len(stored), said[0])
	}
	for i := range stored {
		if bodies[i] != strconv.Itoa(i+1) || i < count && ids[i] != stored[i] {
			t.Fatalf("message %d is %s %q, and the id printed there was another", i+1, stored[i], bodies[i])
		}
	}
	t.Logf("%s stored in truth: %d", said[0], len(stored))
}

func TestPublishRefused(t *testing.T) {
	t.Parallel()
	p, _ := ownPlace(t, redistest.Options{Args: []string{"--maxmemory", "6mb"}})
	var input bytes.Buffer
	for n := range 20_000 {
		fmt.Fprintf(&input, "%d %s\n", n, strings.Repeat("x", 1000))
	}
	got := runWith(t, &input, p.args("publish", "q")...)
	ids, _ := p.bodies(t, "")
	said := regexp.MustCompile(`^error: stored (\d+) messages; lines? (\d+)\b.*\bOOM\b`).FindStringSubmatch(got.stderr)
	if got.code != 1 || said == nil || strings.Contains(got.stderr, "may have been") {
		t.Fatalf("exit code %d, stderr %q", got.code, got.stderr)
	}
	if said[1] != strconv.Itoa(len(ids)) || got.stdout != strings.Join(ids, "\n")+"\n" {
		t.Errorf("it says %q and prints %d bytes of ids; %d messages are stored", said[0], len(got.stdout), len(ids))
	}
}

func TestPublishInterrupted(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	cmd := command(t, p.args("publish", "q")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(stdin, "a\n\nb\nhalf a li")
	for lines, n := bufio.NewScanner(stdout), 0; n < 2 && lines.Scan(); n++ {
		continue
	}
	// Twice in a row is once: timeout(1), for one, sends it so.
	for range 5 {
		if err := cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Microsecond) // two that are sent at once arrive as one
	}
	code := exitCode(t, cmd.Wait())
	want := "error: stored 2 messages; line 4 and what follows it was not sent: interrupted\n"
	if code != 1 || stderr.String() != want {
		t.Errorf("exit code %d, stderr %q; want 1, %q", code, stderr.String(), want)
	}
}

func TestPublishInterruptedInABatch(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	proxy := redistest.NewProxy(t, p.url)
	far := place{proxy.URL(), p.prefix, p.redis}
	cmd := command(t, far.args("publish", "q")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(400 * time.Millisecond)
	fmt.Fprintln(stdin, "a")
	redistest.WaitFor(t, 10*time.Second, "the line in Redis", func() bool { return len(p.entries(t, "")) == 1 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code := exitCode(t, cmd.Wait())
	ids, _ := p.bodies(t, "")
	want := "error: stored 1 message; line 2 and what follows it was not sent: interrupted\n"
	if code != 1 || stderr.String() != want || stdout.String() != ids[0]+"\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 1, the id, %q", code, stdout.String(), stderr.String(), want)
	}
}

func TestPublishOutputClosed(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	cmd := command(t, p.args("publish", "q")...)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer write.Close()
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("a\n"), write, &stderr
	code := exitCode(t, cmd.Run())
	ids, _ := p.bodies(t, "")
	want := "error: stored 1 message, up to line 1, but not all ids are printed: write to standard output: write"
	if code != 1 || !strings.HasPrefix(stderr.String(), want) || len(ids) != 1 {
		t.Errorf("exit code %d, stderr %q, %d messages", code, stderr.String(), len(ids))
	}
}

// TestPublishOutputClosedSaysItOnce has nobody read thousands of ids: one error is enough, and nothing more is sent.
func TestPublishOutputClosedSaysItOnce(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	cmd := command(t, p.args("publish", "q")...)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	defer write.Close()
	var input, stderr bytes.Buffer
	for n := range 3000 {
		input.WriteString(strconv.Itoa(n) + "\n")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &input, write, &stderr
	if code := exitCode(t, cmd.Run()); code != 1 || strings.Count(stderr.String(), "broken pipe") != 1 {
		t.Errorf("exit code %d, stderr %.2000q", code, stderr.String())
	}
	if ids, _ := p.bodies(t, ""); len(ids) > gatherLines {
		t.Errorf("%d messages, want no second batch", len(ids))
	}
}

func TestPublishCutOff(t *testing.T) {
	t.Parallel()
	unsure := ": stored 1 message; line 2 may have been stored or not, and nothing after line 2 was sent: "
	for want, args := range map[string][]string{
		"error: the time of --timeout is over" + unsure: {"publish", "q", "--timeout", "1s"},
		"error: interrupted" + unsure:                   {"publish", "q"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			proxy := redistest.NewProxy(t, p.url)
			far := place{proxy.URL(), p.prefix, p.redis}
			cmd := command(t, far.args(args...)...)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(stdin, "a")
			bufio.NewScanner(stdout).Scan()
			proxy.SwallowReplies()
			fmt.Fprintln(stdin, "b")
			redistest.WaitFor(t, 10*time.Second, "the second line in Redis", func() bool { return len(p.entries(t, "")) == 2 })
			began := time.Now()
			if len(args) == 2 {
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
			}
			code := exitCode(t, cmd.Wait())
			if took := time.Since(began); code != 1 || took > 5*time.Second || !strings.HasPrefix(stderr.String(), want) {
				t.Errorf("exit code %d after %s, stderr %q, want %q", code, took, stderr.String(), want)
			}
		})
	}
}
