// Package cli is the command line: one file per command, built on cobra.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the command ran and did not succeed, or was interrupted
	exitUsage  = 2 // the command line is wrong; nothing was done
)

// Main runs the command that args name, without the program's own name, and returns the exit code: 0, 1 for a failure, 2 for
// a wrong command line. The first SIGINT or SIGTERM lets the command end in order; a second one ends the process.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()

	ran := false
	root := newRoot(&ran)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(stderr, "error: %v\n", err)
	if !ran || errors.As(err, new(usageError)) {
		fmt.Fprintf(stderr, "see %s --help\n", root.Name())
		return exitUsage
	}
	return exitFailed
}

// newRoot builds the command tree. ran is set once cobra found nothing wrong with the command line.
func newRoot(ran *bool) *cobra.Command {
	root := &cobra.Command{
		Use:           "xstreamq",
		Short:         "A reliable queue on Redis Streams",
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			*ran = true
		},
	}
	root.AddCommand(newDemo(), newDemoWorker(), newVersion())
	return root
}

// usageError is a mistake in the command line that cobra does not see.
type usageError struct{ error }
