//go:build linux

package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Bounds for a dead-letter queue of any length, with room for a slow machine and for the race detector.
const (
	slowCall   = "100000" // microseconds that Redis may be busy with one call
	mostMemory = 400      // MiB of the process
)

func TestLongDLQIsReadInBoundedStepsAndMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("500,000 dead letters take some seconds; left out by -short")
	}
	t.Parallel()
	const dead = 500_000
	server := redistest.Start(t, redistest.Options{})
	client := redistest.Dial(t, server.URL())
	fillDead(t, client, "{q}.g.dlq", dead)
	run := func(args ...string) string {
		t.Helper()
		stdout := ""
		for try := range 2 { // the machine may be busy with something else
			var slow []string
			stdout, slow = runWatched(t, client, server.URL(), args...)
			if len(slow) == 0 {
				break
			}
			if try > 0 {
				t.Errorf("%v kept Redis busy for long, twice: %q", args, slow)
			}
		}
		return stdout
	}
	if got := run("dlq", "ls", "q", "g", "--limit", "10"); strings.Count(got, "\n") != 10 {
		t.Errorf("ls --limit 10 lists %q", got)
	}
	top := run("dlq", "top", "q", "g", "--json")
	for _, want := range []string{
		fmt.Sprintf(`"error":"dial tcp <addr>: timeout after <duration>","count":%d,`, dead-dead/100),
		fmt.Sprintf(`"error":"order <n> not found","count":%d,`, dead/100),
	} {
		if !strings.Contains(top, want) {
			t.Errorf("top has no %s:\n%s", want, top)
		}
	}
	if got := run("dlq", "redrive", "q", "g", "--dry-run"); !strings.HasPrefix(got, fmt.Sprintf("would redrive %d dead letters", dead)) {
		t.Errorf("the dry run says %q", got)
	}
}

// runWatched runs a command and returns the calls that Redis found slow meanwhile.
func runWatched(t *testing.T, client rueidis.Client, url string, args ...string) (stdout string, slow []string) {
	t.Helper()
	for _, err := range []error{
		client.Do(t.Context(), client.B().ConfigSet().ParameterValue().ParameterValue("slowlog-log-slower-than", slowCall).Build()).Error(),
		client.Do(t.Context(), client.B().SlowlogReset().Build()).Error(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, "XSTREAMQ_URL="+url, "GORACE=atexit_sleep_ms=0")
	peak := watchMemory(t, cmd)
	stdout = output(t, cmd)
	t.Logf("%s: %s of CPU, %d MiB", strings.Join(args[:2], " "), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), peak())
	if used := peak(); used > mostMemory {
		t.Errorf("%v took %d MiB of memory", args, used)
	}
	calls, err := client.Do(t.Context(), client.B().SlowlogGet().Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range calls {
		slow = append(slow, call.String())
	}
	return stdout, slow
}
