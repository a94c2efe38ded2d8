package main

import (
	"errors"
	"math"
	"time"

	"github.com/spf13/cobra"
)

func newSoakCommand() *cobra.Command {
	f := &faultFlags{name: "soak"}
	var duration time.Duration
	cmd := &cobra.Command{
		Use:   "soak",
		Short: "A long chaos run that also checks that nothing grows",
		Long: "What chaos does, for a long time at an even rate, with one worker that is left alone. Besides the promises of the\n" +
			"queue it checks that the memory of Redis, and the memory and the goroutines of that worker, do not grow: the\n" +
			"median of the last third of the run against that of the middle third. And that consumers of dead workers go.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case duration < 10*time.Second:
				return errors.New("--duration: use 10s or more")
			case !(f.opts.Rate > 0 && f.opts.Rate*duration.Seconds() <= maxMessages): // also what is no number
				return errors.New("--rate: use more than 0, and at most 20,000,000 messages in the whole --duration")
			}
			f.opts.Messages = int(math.Ceil(f.opts.Rate * duration.Seconds()))
			return f.run(cmd)
		},
	}
	f.opts.Spared, f.opts.Flat = 1, true
	f.register(cmd.Flags())
	flags := cmd.Flags()
	flags.DurationVar(&duration, "duration", 30*time.Minute, "how long to publish")
	flags.Float64Var(&f.opts.Rate, "rate", 500, "messages per second")
	flags.DurationVar(&f.opts.KillEvery, "kill-interval", 5*time.Second, "between two kills (SIGKILL) of a worker; 0 is never")
	return cmd
}
