//go:build unix

package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// soon bounds what a test waits for that should be there at once.
const soon = 20 * time.Second

// send publishes a message to the queue q of a place, with headers as name, value, name, value.
func (p place) send(t *testing.T, body string, header ...string) string {
	t.Helper()
	add := p.redis.B().Xadd().Key(p.prefix+"{q}").Id("*").FieldValue().FieldValue("body", rueidis.BinaryString([]byte(body)))
	for pair := range slices.Chunk(header, 2) {
		add = add.FieldValue("h:"+pair[0], pair[1])
	}
	id, err := p.redis.Do(t.Context(), add.Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// work returns a worker of group g, ready to start, whose command is a shell script that finds the folder of the test in $DIR.
func (p place) work(t *testing.T, script string, flags ...string) *exec.Cmd {
	t.Helper()
	args := append([]string{"work", "q", "--group", "g"}, flags...)
	cmd := command(t, p.args(append(args, "--", "sh", "-c", script)...)...)
	cmd.Env = append(cmd.Env, "DIR="+cmd.Dir)
	return cmd
}

// finish runs a worker to its end.
func finish(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code := ended(t, begin(t, cmd))
	t.Logf("stderr of the worker:\n%.3000s", stderr.String())
	return outcome{stdout.String(), stderr.String(), code}
}

// begin starts a worker, whose output goes to the test's log, and kills it with the test.
func begin(t *testing.T, cmd *exec.Cmd) *exec.Cmd {
	t.Helper()
	if cmd.Stdout == nil {
		cmd.Stdout = t.Output()
	}
	if cmd.Stderr == nil {
		cmd.Stderr = t.Output()
	}
	cmd.WaitDelay = time.Second // commands that live on hold the output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// ended waits for a worker and returns its exit code, -1 after a signal.
func ended(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	return exitCode(t, err)
}

// deliveries parses what a worker printed with --json.
func deliveries(t *testing.T, stdout string) []deliveryRow {
	t.Helper()
	var rows []deliveryRow
	decoder := json.NewDecoder(strings.NewReader(stdout))
	decoder.DisallowUnknownFields()
	for {
		var row deliveryRow
		err := decoder.Decode(&row)
		if err == io.EOF {
			return rows
		}
		if err != nil {
			t.Fatalf("%v in %q", err, stdout)
		}
		rows = append(rows, row)
	}
}

// awaitFile waits until a command has written a file.
func awaitFile(t *testing.T, dir, name string) string {
	t.Helper()
	var content []byte
	redistest.WaitFor(t, soon, name, func() bool {
		var err error
		content, err = os.ReadFile(filepath.Join(dir, name))
		return err == nil && len(content) > 0
	})
	return strings.TrimSpace(string(content))
}

// counters are where the messages of group g are.
type counters struct{ pending, retry, backoff, dead, undelivered int64 }

func (p place) counters(t *testing.T) counters {
	t.Helper()
	var c counters
	b := p.redis.B()
	key := p.prefix + "{q}"
	ask := func(cmd rueidis.Completed) rueidis.RedisResult { return p.redis.Do(t.Context(), cmd) }
	pending := func(key, group string) int64 {
		answer, err := ask(b.Xpending().Key(key).Group(group).Build()).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		n, err := answer[0].AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	count := func(cmd rueidis.Completed) int64 {
		n, err := ask(cmd).AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	c.pending = pending(key, "g") + pending(key+".g.retry", "g-retry")
	c.retry = count(b.Xlen().Key(key + ".g.retry").Build())
	c.backoff = count(b.Zcard().Key(key + ".g.delayed").Build())
	c.dead = count(b.Xlen().Key(key + ".g.dlq").Build())
	groups, err := ask(b.XinfoGroups().Key(key).Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	about, err := groups[0].AsMap()
	if err != nil {
		t.Fatal(err)
	}
	last := about["last-delivered-id"] // 6.2 knows no lag
	id, err := last.ToString()
	if err != nil {
		t.Fatal(err)
	}
	undelivered, err := ask(b.Xrange().Key(key).Start("(" + id).End("+").Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	c.undelivered = int64(len(undelivered))
	return c
}
