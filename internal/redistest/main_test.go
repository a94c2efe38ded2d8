package redistest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/rueidis"
)

// helperVariable makes this test binary do something else in a process of its own, see TestMain.
const helperVariable = "XSTREAMQ_REDISTEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "url": // print the address of the shared server and keep it until the input ends
		url, err := shared.get()
		if err != nil {
			fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stdout, url)
		_, _ = io.Copy(io.Discard, os.Stdin)
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stdout, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "leak": // leave a goroutine behind
		go func() { select {} }()
	}
	Main(m)
}

// helper returns this test binary as a helper process without the environment's say in where Redis is.
func helper(tb testing.TB, role string, env ...string) *exec.Cmd {
	tb.Helper()
	binary, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.run=^$")
	cmd.Env = append(os.Environ(), urlVariable+"=", "TMPDIR="+tb.TempDir(), helperVariable+"="+role)
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// set and get fail the test when Redis does not take the command.
func set(tb testing.TB, client rueidis.Client, key, value string) {
	tb.Helper()
	if err := client.Do(context.Background(), client.B().Set().Key(key).Value(value).Build()).Error(); err != nil {
		tb.Fatalf("SET %s: %v", key, err)
	}
}

func get(tb testing.TB, client rueidis.Client, key string) string {
	tb.Helper()
	value, err := client.Do(context.Background(), client.B().Get().Key(key).Build()).ToString()
	if err != nil && !rueidis.IsRedisNil(err) {
		tb.Fatalf("GET %s: %v", key, err)
	}
	return value
}
