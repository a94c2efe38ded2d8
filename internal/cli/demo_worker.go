package cli

import (
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq/internal/cli/demo"
)

// newDemoWorker is the process that demo kills. Nobody else has a use for it.
func newDemoWorker() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-worker",
		Short:  "The worker that demo kills; it is started by demo",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.RunDoomed(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
