package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// arguments checks how many arguments there are, and names the one that is missing. names are those of the usage line; all
// after the first need of them may be left out.
func arguments(need int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < need:
			return fmt.Errorf("%s is missing; usage: %s", names[len(args)], cmd.UseLine())
		case len(args) > len(names):
			return fmt.Errorf("argument %q is one too many; usage: %s", args[len(names)], cmd.UseLine())
		}
		return nil
	}
}

// argument returns the one at a place, or "" where it was left out.
func argument(args []string, at int) string {
	if at < len(args) {
		return args[at]
	}
	return ""
}
