// Command loadtest shows what the queue promises: that nothing is lost when processes and servers are killed, and how fast
// it is. It starts what it needs: its own redis-server, a producer that speaks RESP by docs/contract.md alone, and worker
// processes on the library.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// errVerdict says that a run came to its end and something it checks was not true. The report has it.
var errVerdict = errors.New("the verdict is broken: see the checks of the report")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "loadtest",
		Short: "Load, chaos and soak runs of the queue",
		Long: "Load, chaos and soak runs of the queue. Each ends with a report, and with the exit code 0 only when its verdict holds.\n" +
			"Without --url a run starts a redis-server of its own.",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newChaosCommand(), newLoadCommand(), newSoakCommand(), newWorkerCommand())
	return root
}
