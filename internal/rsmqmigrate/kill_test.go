package rsmqmigrate

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// processEnv makes this binary the process that TestMoveKilled kills.
const processEnv = "XSTREAMQ_TEST_RSMQ_MOVER"

// moverProcess moves what its environment says, and prints a line for each page.
func moverProcess(url string) int {
	rc, err := redistest.Open(url)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer rc.Close()
	args := strings.Split(os.Getenv(processEnv+"_ARGS"), " ")
	m, err := newMover(rc, Queues{Namespace: args[0], Name: args[1], To: args[2]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	m.apart = args[3] == "true"
	m.progress = func(n int64) { fmt.Fprintln(os.Stdout, n) }
	if _, err := m.move(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A process that moves is killed in the middle, again and again: in the end every message has arrived, once.
func TestMoveKilled(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	rc := redistest.Dial(t, server.URL())
	for name, apart := range map[string]bool{"one": false, "two": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rigOf(t, rc, Queues{Namespace: "rsmq", Name: name, To: name}, apart)
			ids := append(r.many(5000), r.send(time.Hour, "late 1", "late 2")...)
			kills := 0
			for range 5 {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), processEnv+"="+server.URL(), fmt.Sprintf("%s_ARGS=rsmq %s %s %v", processEnv, name, name, apart))
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				lines := bufio.NewScanner(out)
				for range 2 {
					lines.Scan()
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				if messages, _ := r.left(); messages > 0 {
					kills++
				}
			}
			if kills == 0 {
				t.Error("no process was killed before it had moved everything")
			}
			r.move()
			r.once(ids)
			if messages, fields := r.left(); messages+fields != 0 {
				t.Errorf("%d messages are left, %d fields", messages, fields)
			}
		})
	}
}
