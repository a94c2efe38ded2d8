// Package cli is the command line: one file per command, built on cobra.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // the command ran and did not succeed, or was interrupted, or found something unhealthy
	exitUsage  = 2 // the command line is wrong; nothing was done
	exitEmpty  = 4 // nothing matched, and --exit-empty asks for this
)

const rootHelp = `A reliable queue on Redis Streams: publish messages, work on them, look at what waits, and deal with
what failed.

Where Redis is: --url, else --url-file, else the environment variable XSTREAMQ_URL, else
redis://localhost:6379. The URL may be redis://[user:password@]host:port[/db], rediss:// for TLS,
unix:///path/of/socket?db=0; several nodes of a cluster as redis://host:port?addr=host2:port2; and
Redis Sentinel as redis://sentinel:26379?master_set=mymaster. A password on the command line is seen
by whoever lists the processes of this machine: keep the URL in a file and name that with
--url-file. Passwords are never printed.

On a terminal, lists are aligned tables with a header, cut to its width. Piped, they are lines of
values between tabs, without a header and uncut. With --json, standard output holds JSON alone, one
object per line. Whatever else there is to say goes to standard error. Bytes that are not printable
are escaped, in JSON by its own means.

Exit codes: 0 done; 1 it failed, was interrupted, or something is unhealthy; 2 the command line is
wrong and nothing was done; 4 nothing matched, and --exit-empty was given.`

const rootExample = `  xstreamq ls
  xstreamq publish orders '{"id": 1}'
  xstreamq work orders --group shipping -- ./ship.sh
  xstreamq dlq ls orders shipping
  xstreamq dlq redrive orders shipping`

// Main runs the command that args name, without the program's own name, and returns the exit code: 0, 1 for a failure, 2 for
// a wrong command line, 4 for an empty list where --exit-empty asks for it. The first SIGINT or SIGTERM lets the command end
// in order; a second one ends the process.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Not stopped at the end: what is left of the same signal must not change the exit code.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(sameSignal, stop) })()
	// A closed pipe is then an error of the write, which the command can deal with, instead of the end of the process.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)

	a := &app{in: in, err: errOut, ctx: ctx}
	stdout := newStdout(out, &a.bar)
	a.out = stdout
	cobra.EnableCommandSorting = false
	root, ran := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	a.bar.end()
	if failed := stdout.failed(); failed != nil && (err == nil || errors.Is(err, errQuiet)) {
		err = failed // nobody was told what the command had to say; cobra does not look whether its help was written
	}
	return a.finish(ctx, cmd, err, *ran)
}

// finish says what went wrong, in one line, and returns the exit code.
func (a *app) finish(ctx context.Context, cmd *cobra.Command, err error, ran bool) int {
	var closed *stdoutError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errEmpty):
		return exitEmpty
	case errors.Is(err, errQuiet):
		return exitFailed
	case errors.As(err, &closed) && errors.Is(closed, syscall.EPIPE):
		return exitFailed // as with head: whoever closed the pipe knows
	case closed != nil: // in the output of the command, or in its help
	case !ran, errors.As(err, new(usageError)), errors.Is(err, xstreamq.ErrInvalidName):
		fmt.Fprintf(a.err, "error: %s; see %s --help\n", explain(err), cmd.CommandPath())
		return exitUsage
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		fmt.Fprintln(a.err, "error: interrupted")
		return exitFailed
	}
	fmt.Fprintf(a.err, "error: %s\n", explain(err))
	return exitFailed
}

// commands are those of the program, in the order of the work.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newLs(a),
		newDepth(a),
		newPending(a),
		newConsumers(a),
		newLag(a),
		newPeek(a),
		newPublish(a),
		newWork(a),
		newCancel(a),
		newDLQ(a),
		newCompact(a),
		newForget(a),
		newHealth(a),
		newDoctor(a),
		newRSMQ(a),
		newDemo(a),
		newDemoWorker(),
		newVersion(a),
	}
}

// newRoot builds the command tree. ran is set once cobra found nothing wrong with the command line.
func newRoot(a *app) (root *cobra.Command, ran *bool) {
	ran = new(bool)
	root = &cobra.Command{
		Use:           "xstreamq",
		Short:         "A reliable queue on Redis Streams",
		Long:          rootHelp,
		Example:       rootExample,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	a.addFlags(root)
	root.AddCommand(commands(a)...)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Long, cmd.Example = completionHelp, completionExample
		case "help":
			cmd.Args = knownCommand
		}
		finishTree(cmd, ran)
	}
	return root, ran
}

// helpWidth is how wide --help is at most.
const helpWidth = 100

// finishTree notes when a command begins to run, and makes those that have commands below them refuse other words.
func finishTree(cmd *cobra.Command, ran *bool) {
	for _, sub := range cmd.Commands() {
		finishTree(sub, ran)
	}
	switch run := cmd.RunE; {
	case run != nil:
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*ran = true
			return run(cmd, args)
		}
	case cmd.HasSubCommands():
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
}

// knownCommand checks the words after help.
func knownCommand(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 && found.HasSubCommands() {
		return fmt.Errorf("unknown command %q for %q", rest[0], found.CommandPath())
	}
	return err
}
