package cli

import (
	"fmt"

	"github.com/spf13/pflag"
)

// emptiness is the flag of a list that may be empty.
type emptiness struct{ exit bool }

func (e *emptiness) addFlag(flags *pflag.FlagSet) {
	flags.BoolVar(&e.exit, "exit-empty", false, "exit with 4 when there is nothing to list")
}

// end is called with how many rows a list had. An empty list says nothing, but on a terminal gives a hint.
func (e *emptiness) end(a *app, rows int, hint string) error {
	switch {
	case rows > 0:
		return nil
	case e.exit:
		return errEmpty
	case isTerminal(a.out) && !a.json:
		fmt.Fprintln(a.err, hint)
	}
	return nil
}
