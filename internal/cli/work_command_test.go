//go:build unix

package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// TestWorkOddCommands has commands that do not read, that write much, and that leave others behind: all count as what they exit with.
func TestWorkOddCommands(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"does not read":               `exit 0`,
		"closes its input":            `exec <&-; sleep 0.1`,
		"reads a part":                `head -c 10 >/dev/null`,
		"writes megabytes to both":    `head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2`,
		"closes all":                  `exec <&- >&- 2>&-`,
		"leaves one holding all":      `sleep 60 & echo $! >"$DIR/pid"`,
		"leaves one with its input":   `sleep 60 >/dev/null 2>&1 <&0 & echo $! >"$DIR/pid"`,
		"outlived by one that writes": `sh -c 'while :; do echo x; sleep 0.01; done' >&2 &`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			p.send(t, strings.Repeat("x", 1<<20))
			cmd := p.work(t, script, "--max", "1", "--json", "--kill-after", "100ms")
			began := time.Now()
			got := finish(t, cmd)
			rows := deliveries(t, got.stdout)
			if len(rows) != 1 || rows[0].Verdict != fateAck || got.code != 0 || p.counters(t) != (counters{}) {
				t.Errorf("exit code %d, deliveries %+v", got.code, rows)
			}
			if took := time.Since(began); took > 15*time.Second {
				t.Errorf("it took %s", took)
			}
			if strings.HasPrefix(name, "leaves") {
				killLeft(t, awaitFile(t, cmd.Dir, "pid"))
			}
			if strings.HasPrefix(name, "writes") && strings.Count(got.stderr, "\x00") != 6_000_000 {
				t.Errorf("%d bytes passed through", strings.Count(got.stderr, "\x00"))
			}
		})
	}
}

// killLeft ends a process that a command left behind, and fails the test when that is gone: it was not to be killed.
func killLeft(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		t.Errorf("the process %d that the command left behind: %v", n, err)
	}
}

// TestWorkHandlerTimeout ends a command that ignores SIGTERM together with its child, and counts that as a failure.
func TestWorkHandlerTimeout(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	cmd := p.work(t, `trap "echo told >&2" TERM
		sh -c 'trap "" TERM; echo $$ >"$DIR/child"; sleep 60 & wait; sleep 60'
		while :; do sleep 0.02; done`,
		"--max", "1", "--json", "--handler-timeout", "300ms", "--kill-after", "300ms", "--retries", "0")
	got := finish(t, cmd)
	rows := deliveries(t, got.stdout)
	if len(rows) != 1 || rows[0].Verdict != fateDead || rows[0].ExitCode != nil ||
		!strings.HasPrefix(rows[0].Error, "xstreamq: handler timeout: signal: killed") || got.code != 0 {
		t.Fatalf("exit code %d, deliveries %+v", got.code, rows)
	}
	if took := rows[0].DurationMS; took < 600 || took > 5000 {
		t.Errorf("it took %d ms; SIGKILL comes 300 ms after SIGTERM, which comes after 300 ms", took)
	}
	gone(t, awaitFile(t, cmd.Dir, "child"))
	if dead := p.entries(t, ".g.dlq")[0].FieldValues; dead["reason"] != "failed" || !strings.Contains(dead["err"], "handler timeout") {
		t.Errorf("the dead letter is %q", dead)
	}
}

// gone waits until a process does not exist, or is only waiting for its parent to notice.
func gone(t *testing.T, pid string) {
	t.Helper()
	redistest.WaitFor(t, soon, "the end of process "+pid, func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil {
			_, state, _ := bytes.Cut(stat, []byte(") "))
			return bytes.HasPrefix(state, []byte("Z"))
		}
		n, err := strconv.Atoi(pid)
		return err == nil && syscall.Kill(n, 0) == syscall.ESRCH
	})
}

// TestWorkOrphans ends a command whose child outlives it, with nothing in common but the process group.
func TestWorkOrphans(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	cmd := p.work(t, `sh -c 'trap "" TERM; echo $$ >"$DIR/child"; while :; do sleep 0.02; done' <&- >&- 2>&- & wait`,
		"--max", "1", "--handler-timeout", "500ms", "--kill-after", "300ms")
	if got := finish(t, cmd); got.code != 0 {
		t.Errorf("exit code %d", got.code)
	}
	// It was killed before the message was given back: no second run may meet it.
	child := awaitFile(t, cmd.Dir, "child")
	if n, _ := strconv.Atoi(child); syscall.Kill(n, 0) == nil {
		gone(t, child)
	}
}

func TestWorkCommandNotFound(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	for _, command := range []string{"no-such-command-anywhere", "./no-such-file", "/etc"} {
		got := run(t, p.args("work", "q", "--group", "g", "--", command)...)
		if got.code != 1 || !strings.HasPrefix(got.stderr, "error: the command cannot be run: ") || !strings.Contains(got.stderr, command) ||
			strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
		}
	}
	groups, err := p.redis.Do(t.Context(), p.redis.B().XinfoGroups().Key(p.prefix+"{q}").Build()).ToArray()
	if err != nil || len(groups) != 0 {
		t.Errorf("groups %v, %v: nothing was to be begun", groups, err)
	}
}

// TestWorkCommandThatCannotStart has commands that are there and cannot be run, or that vanish: the worker ends, and no message is
// the worse for it.
func TestWorkCommandThatCannotStart(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"no program":    "\x7fELF",
		"no such shell": "#!/no/such/shell\n",
		"vanishes":      "#!/bin/sh\nrm \"$0\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			p.send(t, "1")
			p.send(t, "2")
			script := filepath.Join(t.TempDir(), "command")
			if err := os.WriteFile(script, []byte(content), 0o700); err != nil { //nolint:gosec // it is to be run
				t.Fatal(err)
			}
			got := run(t, p.args("work", "q", "--group", "g", "--concurrency", "1", "--backoff", "1ms", "--", script)...)
			if got.code != 1 || !strings.Contains(got.stderr, "error: the command cannot be started: ") || !strings.Contains(got.stderr, script) {
				t.Errorf("exit code %d, stderr %q", got.code, got.stderr)
			}
			now := p.counters(t)
			left := now.backoff + now.retry + now.undelivered
			if want := map[string]int64{"vanishes": 1}[name]; left != 2-want || now.pending+now.dead != 0 {
				t.Errorf("messages %+v", now)
			}
			for _, e := range p.entries(t, ".g.retry") {
				if e.FieldValues["rc"] != "" || e.FieldValues["lc"] != "" {
					t.Errorf("a budget was spent: %q", e.FieldValues)
				}
			}
		})
	}
}

// TestWorkHeadersTooLarge has a message that no command can be told about. It must not come again for ever.
func TestWorkHeadersTooLarge(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "", "huge", strings.Repeat("x", 3<<20))
	fine := p.send(t, "")
	got := finish(t, p.work(t, `true`, "--json", "--exit-when-empty", "--retries", "1", "--backoff", "1ms"))
	var seen []string
	for _, row := range deliveries(t, got.stdout) {
		if row.OriginalID != fine {
			seen = append(seen, fmt.Sprintf("%d %s %v %s", row.Attempt, row.Verdict, row.ExitCode, row.Error))
		}
	}
	if len(seen) != 2 || !strings.HasPrefix(seen[0], "1 retry <nil> the command cannot be started: ") || !strings.HasPrefix(seen[1], "2 dead ") {
		t.Errorf("deliveries %q", seen)
	}
	if now := p.counters(t); now != (counters{dead: 1}) || got.code != 0 {
		t.Errorf("exit code %d, messages %+v", got.code, now)
	}
}

// TestWorkOutputClosed has nobody read what the commands print. That must not be taken for failures of theirs.
func TestWorkOutputClosed(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{{}, {"--json"}} {
		t.Run(strings.Join(flags, ""), func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			for range 20 {
				p.send(t, "")
			}
			cmd := p.work(t, `head -c 1000000 /dev/zero`, append(flags, "--concurrency", "2", "--retries", "0", "--backoff", "1h")...)
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = write, &stderr
			if len(flags) > 0 {
				cmd.Stderr = io.Discard // there goes the output of the commands
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			_, _ = io.ReadFull(read, make([]byte, 10))
			read.Close()
			code := exitCode(t, cmd.Wait())
			now := p.counters(t)
			if code != 1 || now.dead+now.pending != 0 || now.undelivered+now.backoff+now.retry == 0 {
				t.Errorf("exit code %d, messages %+v, stderr %.2000q", code, now, stderr.String())
			}
		})
	}
}
