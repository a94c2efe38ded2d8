package cli

import (
	"os"
	"os/signal"
	"syscall"
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
	hearSignals()
	redistest.Main(m)
}

// hearSignals undoes what nohup and shells do to jobs in the background: a signal that is ignored here would be ignored by every worker
// that a test starts, and stops in vain.
func hearSignals() {
	for _, s := range []os.Signal{syscall.SIGHUP, os.Interrupt} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}
