package main

import (
	"time"

	"github.com/spf13/cobra"
)

func newChaosCommand() *cobra.Command {
	f := &faultFlags{name: "chaos"}
	cmd := &cobra.Command{
		Use:   "chaos",
		Short: "Publish while workers and Redis are killed, and check every promise",
		Long: "Publish at a rate while worker processes are killed (SIGKILL), stopped (SIGSTOP) and replaced, and Redis too with\n" +
			"--redis-faults. Then wait until nothing is left, and hold the journal of all handlers, the producer's list of\n" +
			"acknowledged ids and what is in Redis against the promises of the queue.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd.Flags())
	flags := cmd.Flags()
	flags.IntVar(&f.opts.Messages, "messages", 20_000, "how many to publish")
	flags.Float64Var(&f.opts.Rate, "rate", 2000, "messages per second; 0 is as fast as possible")
	flags.DurationVar(&f.opts.KillEvery, "kill-interval", 400*time.Millisecond, "between two kills (SIGKILL) of a worker; 0 is never")
	return cmd
}
