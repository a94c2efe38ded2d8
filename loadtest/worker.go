package main

import (
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

// workerCommand runs a worker process. It is for the other commands, which tell it on its standard input what to do.
const workerCommand = "worker"

func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand,
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return worker.Process(cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
}
