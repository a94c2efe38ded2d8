//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWorkDrains stops a worker in mid-command: the command ends by itself, its message is acked, and what was not begun goes back.
func TestWorkDrains(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			for range 3 {
				p.send(t, "")
			}
			cmd := p.work(t, `echo started >"$DIR/started"; while [ ! -e "$DIR/go" ]; do sleep 0.01; done; echo done`,
				"--concurrency", "1", "--prefetch", "1")
			log, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			awaitFile(t, cmd.Dir, "started")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			for lines := bufio.NewScanner(log); lines.Scan(); {
				if strings.Contains(lines.Text(), "draining") {
					write(t, cmd.Dir, "go")
				}
			}
			if code := exitCode(t, cmd.Wait()); code != 0 || stdout.String() != "done\n" {
				t.Errorf("exit code %d, stdout %q", code, stdout.String())
			}
			if now := p.counters(t); now.pending+now.backoff+now.dead != 0 || now.retry+now.undelivered != 2 {
				t.Errorf("messages %+v, want two that wait unharmed", now)
			}
		})
	}
}

func write(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWorkDrainDeadline stops a worker whose commands do not end in time: they are ended, their messages given back, and the exit
// code is 0.
func TestWorkDrainDeadline(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "gentle")
	p.send(t, "stubborn")
	cmd := p.work(t, `read -r how; echo $$ >"$DIR/$how"; [ $how = gentle ] || trap "" TERM; while :; do sleep 0.02; done`,
		"--json", "--drain-timeout", "200ms", "--kill-after", "300ms", "--retries", "0")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	begin(t, cmd)
	pids := []string{awaitFile(t, cmd.Dir, "gentle"), awaitFile(t, cmd.Dir, "stubborn")}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := ended(t, cmd); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var seen []string
	for _, row := range deliveries(t, stdout.String()) {
		seen = append(seen, fmt.Sprint(row.Verdict, " ", row.Error))
	}
	slices.Sort(seen)
	want := []string{
		"release xstreamq: drain deadline passed: signal: killed", "release xstreamq: drain deadline passed: signal: terminated",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if now := p.counters(t); now.pending+now.dead != 0 || now.retry+now.backoff != 2 {
		t.Errorf("messages %+v, want two that wait unharmed", now)
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}

// TestWorkSecondSignal ends a worker twice: it dies of the signal, at once, and its command with it.
func TestWorkSecondSignal(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	cmd := p.work(t, `trap "" TERM; echo $$ >"$DIR/pid"; while :; do sleep 0.02; done`)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := awaitFile(t, cmd.Dir, "pid")
	signalled := func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	signalled()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if strings.Contains(lines.Text(), "draining") {
			time.AfterFunc(2*sameSignal, signalled)
		}
	}
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %s, want the signal", cmd.ProcessState)
	}
	gone(t, pid)
}

// TestWorkSecondSignalThatWasIgnored ends a worker twice that was started with the signal ignored, as a shell does with a job in
// the background: it ends at once, and its command with it.
func TestWorkSecondSignalThatWasIgnored(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	inner := p.work(t, `trap "" TERM; echo $$ >"$DIR/pid"; while :; do sleep 0.02; done`)
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `trap "" INT; exec "$0" "$@"`, inner.Path}, inner.Args[1:]...)...)
	cmd.Env, cmd.Dir = inner.Env, inner.Dir
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := awaitFile(t, inner.Dir, "pid")
	signalled := func() {
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			t.Error(err)
		}
	}
	signalled()
	began := time.Now()
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if strings.Contains(lines.Text(), "draining") {
			time.AfterFunc(2*sameSignal, signalled)
		}
	}
	if code := exitCode(t, cmd.Wait()); code != 128+int(syscall.SIGINT) || time.Since(began) > 10*time.Second {
		t.Errorf("exit code %d after %s", code, time.Since(began))
	}
	gone(t, pid)
}

// TestWorkSignalDoubled sends a signal twice in a row, as timeout(1) does: that is one.
func TestWorkSignalDoubled(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	cmd := begin(t, p.work(t, `echo $$ >"$DIR/pid"; sleep 0.5`))
	awaitFile(t, cmd.Dir, "pid")
	for range 3 {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // two that are sent at once arrive as one
	}
	if code := ended(t, cmd); code != 0 || p.counters(t) != (counters{}) {
		t.Errorf("exit code %d, messages %+v", code, p.counters(t))
	}
}

// TestWorkStoppedWithItsCommands signals the worker and its command alike, as a service manager does: that is no failure.
func TestWorkStoppedWithItsCommands(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"by the signal": `echo $$ >"$DIR/pid"; exec sleep 60`,
		"by exit code":  `trap "kill \$!; exit 143" TERM; echo $$ >"$DIR/pid"; sleep 60 & wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sharedPlace(t)
			p.send(t, "")
			cmd := begin(t, p.work(t, script, "--retries", "0"))
			pid, err := strconv.Atoi(awaitFile(t, cmd.Dir, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			for _, target := range []int{pid, cmd.Process.Pid} {
				if err := syscall.Kill(target, syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
			}
			if code := ended(t, cmd); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if now := p.counters(t); now.dead+now.pending != 0 || now.backoff+now.retry != 1 {
				t.Errorf("messages %+v, want one that waits unharmed", now)
			}
		})
	}
}

// TestWorkKilled kills a worker in mid-command. Its message comes again, to another worker, as a lost lease.
func TestWorkKilled(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	id := p.send(t, "")
	flags := []string{"--visibility-timeout", "300ms", "--json"}
	first := begin(t, p.work(t, `echo $$ >"$DIR/pid"; exec sleep 60`, flags...))
	pid := awaitFile(t, first.Dir, "pid")
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if code := ended(t, first); code != -1 {
		t.Errorf("exit code %d of a killed worker", code)
	}
	second := finish(t, p.work(t, `true`, append(flags, "--exit-when-empty")...))
	rows := deliveries(t, second.stdout)
	if len(rows) != 1 || rows[0].OriginalID != id || rows[0].Attempt != 2 || rows[0].Verdict != fateAck || second.code != 0 {
		t.Errorf("exit code %d, deliveries %+v", second.code, rows)
	}
	if n, err := strconv.Atoi(pid); err != nil || runtime.GOOS != "linux" && syscall.Kill(n, syscall.SIGKILL) != nil {
		t.Errorf("command %q, %v: commands end with a killed worker on Linux alone", pid, err)
	}
}

// TestWorkMax starts as many commands as --max says, with more messages and more workers than that.
// TestWorkMaxIsPatient has a command that runs on after --max is reached, for longer than --drain-timeout.
// TestWorkExitWhenEmpty fails the first time: the retry that waits is part of what keeps a group from being empty.
// TestWorkNoServer cannot begin: one line, and exit code 1.
