package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// addLimit is the flag that bounds a list, which is whole without it.
func addLimit(flags *pflag.FlagSet, limit *int) {
	flags.IntVar(limit, "limit", 0, "list this many at most (default: all of them)")
}

// checkLimit refuses a limit that cannot be meant. Without the flag the limit is 0, which stands for none.
func checkLimit(cmd *cobra.Command, limit int) error {
	if cmd.Flags().Changed("limit") && limit < 1 {
		return usageError{errors.New("--limit must be above 0; leave it out to list all")}
	}
	return nil
}
