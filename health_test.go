package xstreamq_test

import (
	"os"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// healthMisconf makes a server with its own directory unable to save, so that it refuses writes, and PING, with MISCONF.
func healthMisconf(t *testing.T, server *redistest.Server, dir string) {
	t.Helper()
	rc, err := redistest.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	healthCommand(t, rc, "CONFIG", "SET", "save", "3600 1000000")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	healthCommand(t, rc, "BGSAVE")
	redistest.WaitFor(t, stopWait, "MISCONF", func() bool {
		err := rc.Do(t.Context(), rc.B().Arbitrary("PING").Build()).Error()
		return err != nil && strings.HasPrefix(err.Error(), "MISCONF")
	})
}

func healthCommand(t *testing.T, rc rueidis.Client, words ...string) {
	t.Helper()
	if err := rc.Do(t.Context(), rc.B().Arbitrary(words...).Build()).Error(); err != nil {
		t.Fatalf("%v: %v", words, err)
	}
}
