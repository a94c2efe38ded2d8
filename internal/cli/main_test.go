package cli

import (
	"os"
	"testing"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// asCommand makes this test binary the command line, also for the worker that it starts as demo.
const asCommand = "XSTREAMQ_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		code := Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		notePeak()
		os.Exit(code)
	}
	redistest.Main(m)
}
