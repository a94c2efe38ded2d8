package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// deadGroup is a group on the shared server with dead letters.
type deadGroup struct {
	client rueidis.Client
	prefix string
	dead   int
}

// newDeadGroup makes dead letters of queue q, group g. The body of each is its number, and so is the end of its original id.
func newDeadGroup(t *testing.T, dead int) *deadGroup {
	t.Helper()
	d := &deadGroup{client: redistest.Client(t), prefix: redistest.Prefix(t), dead: dead}
	fillDead(t, d.client, d.key(".g.dlq"), dead)
	return d
}

// fillDead adds dead letters, some at a time. Every hundredth has an error of its own.
func fillDead(t *testing.T, client rueidis.Client, key string, dead int) {
	t.Helper()
	const script = `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do
		local err = 'dial tcp 10.0.' .. (i % 7) .. '.' .. (i % 250) .. ':443: timeout after ' .. i .. 'ms'
		if i % 100 == 0 then err = 'order ' .. i .. ' not found' end
		redis.call('XADD', KEYS[1], '*', 'body', tostring(i), 'oid', '1-' .. i, 'rc', '4', 'err', err, 'reason', 'failed', 'at', 1700000000000 + i)
	end`
	const page = 5000
	for first := 1; first <= dead; first += page {
		last := min(first+page-1, dead)
		fill := client.B().Eval().Script(script).Numkeys(1).Key(key).Arg(fmt.Sprint(first), fmt.Sprint(last)).Build()
		if err := client.Do(t.Context(), fill).Error(); err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(err)
		}
	}
}

func (d *deadGroup) key(of string) string { return d.prefix + "{q}" + of }

// command is a command line on these keys.
func (d *deadGroup) command(t *testing.T, url string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, append(args, "--prefix", d.prefix)...)
	cmd.Env = append(cmd.Env, "XSTREAMQ_URL="+url, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func (d *deadGroup) length(t *testing.T, of string) int {
	t.Helper()
	n, err := d.client.Do(t.Context(), d.client.B().Xlen().Key(d.key(of)).Build()).AsInt64()
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}

// onceInRetry checks that each dead letter is on the retry stream exactly once, and nothing is dead any more.
func (d *deadGroup) onceInRetry(t *testing.T) {
	t.Helper()
	entries, err := d.client.Do(t.Context(), d.client.B().Xrange().Key(d.key(".g.retry")).Start("-").End("+").Build()).AsXRange()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, e := range entries {
		seen[e.FieldValues["oid"]]++
		if e.FieldValues["oid"] != "1-"+e.FieldValues["body"] || e.FieldValues["rc"] != "" {
			t.Errorf("entry %s is %v", e.ID, e.FieldValues)
		}
	}
	if len(seen) != d.dead || len(entries) != d.dead || d.length(t, ".g.dlq") != 0 {
		t.Errorf("%d messages in %d entries on the retry stream, %d still dead; want %d, each once, and none",
			len(seen), len(entries), d.length(t, ".g.dlq"), d.dead)
	}
}

// output runs a command that must succeed.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errOut.String())
	}
	return out.String()
}

// TestKilledRedriveLosesAndDoublesNothing kills it while its calls are on their way, and runs it again.
func TestKilledRedriveLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	const dead = 5000
	d := newDeadGroup(t, dead)
	proxy := redistest.NewProxy(t, redistest.URL(t))
	proxy.Delay(5 * time.Millisecond)
	cmd := d.command(t, proxy.URL(), "dlq", "redrive", "q", "g", "--yes")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	redistest.WaitFor(t, 20*time.Second, "a part of the dead letters to be redriven", func() bool { return d.length(t, ".g.retry") > dead/5 })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// What it sent last may still be on its way through the proxy.
	proxy.Cut()
	if left := d.length(t, ".g.dlq"); left == 0 || left+d.length(t, ".g.retry") != dead {
		t.Fatalf("after the kill %d are dead and %d to be retried", left, d.length(t, ".g.retry"))
	}
	output(t, d.command(t, redistest.URL(t), "dlq", "redrive", "q", "g", "--yes"))
	d.onceInRetry(t)
}

func TestInterruptedRedriveSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	d := newDeadGroup(t, 2000)
	cmd := d.command(t, redistest.URL(t), "dlq", "redrive", "q", "g", "--yes", "--rate", "500", "--json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// By then they go 50 at a time, with 100ms in between: the answer to a call that the signal cuts off would not be known.
	redistest.WaitFor(t, 10*time.Second, "the first ones to be redriven", func() bool { return d.length(t, ".g.retry") > 200 })
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != exitFailed {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	done := d.length(t, ".g.retry")
	want := fmt.Sprintf("stopped: %s redriven so far; run it again to go on\nerror: interrupted\n", deadLetters(done))
	if lines := strings.Count(stdout.String(), `"result":"redriven"`); stderr.String() != want || lines != done || done == d.dead {
		t.Errorf("%d are redriven, %d are listed, stderr %q, want %q", done, lines, stderr.String(), want)
	}
	output(t, d.command(t, redistest.URL(t), "dlq", "redrive", "q", "g", "--yes"))
	d.onceInRetry(t)
}

func TestTwoRedrivesAtOnceRedriveOnce(t *testing.T) {
	t.Parallel()
	d := newDeadGroup(t, 5000)
	proxy := redistest.NewProxy(t, redistest.URL(t))
	proxy.Delay(time.Millisecond) // so that neither is done before the other begins
	var wg sync.WaitGroup
	redriven := make([]int, 2)
	for i := range redriven {
		wg.Go(func() {
			out, err := d.command(t, proxy.URL(), "dlq", "redrive", "q", "g", "--yes", "--json").Output()
			if err != nil {
				t.Errorf("one of two: %v", err)
			}
			redriven[i] = strings.Count(string(out), `"result":"redriven"`)
		})
	}
	wg.Wait()
	if redriven[0]+redriven[1] != d.dead || redriven[0] == 0 || redriven[1] == 0 {
		t.Errorf("they say that they redrove %d of %d", redriven, d.dead)
	}
	d.onceInRetry(t)
}

// TestRedriveEndsWhileHandlersFail runs it with a worker that makes dead letters again of all that it is given.
func TestRedriveEndsWhileHandlersFail(t *testing.T) {
	t.Parallel()
	d := newDeadGroup(t, 1000)
	client, err := xstreamq.Open(redistest.URL(t), xstreamq.Config{KeyPrefix: d.prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	queue, err := xstreamq.NewQueue(client, "q", xstreamq.WithCodec(xstreamq.String{}))
	if err != nil {
		t.Fatal(err)
	}
	fail := func(context.Context, *xstreamq.Message[string]) error { return errors.New("still broken") }
	if _, err := queue.Subscribe("g", fail, xstreamq.SubscribeOptions{MaxRetries: xstreamq.NoRetries}); err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	canary := d.command(t, redistest.URL(t), "dlq", "redrive", "q", "g", "--yes", "--canary", "5", "--timeout", "30s")
	var stderr bytes.Buffer
	canary.Stderr = &stderr
	if code := exitCode(t, canary.Run()); code != exitFailed || !strings.Contains(stderr.String(), "canary") || d.length(t, ".g.dlq") < d.dead-5 {
		t.Fatalf("the canary: exit code %d, %d are dead, stderr %q", code, d.length(t, ".g.dlq"), stderr.String())
	}
	stdout := output(t, d.command(t, redistest.URL(t), "dlq", "redrive", "q", "g", "--yes", "--rate", "2000", "--timeout", "30s"))
	if want := fmt.Sprintf("redrove %d dead letters of queue q, group g\n", d.dead); stdout != want {
		t.Errorf("it says %q, want %q", stdout, want)
	}
	redistest.WaitFor(t, 10*time.Second, "all to be dead again", func() bool { return d.length(t, ".g.dlq") == d.dead && d.length(t, ".g.retry") == 0 })
	if err := client.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	again := output(t, d.command(t, redistest.URL(t), "dlq", "top", "q", "g"))
	if !strings.HasPrefix(again, fmt.Sprintf("%d\tfailed\t", d.dead)) || strings.Count(again, "\n") != 1 {
		t.Errorf("they are dead for %q", again)
	}
}
