package cli

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// choice is which dead letters redrive and purge work on: those that are named, or all that the filter chooses.
type choice struct {
	verb         string // redrive or purge
	flags        filterFlags
	limit        int
	yes, dryRun  bool
	empty        emptiness
	queue, group string
	ids          []string
	filter       xstreamq.DeadFilter
}

func (c *choice) addFlags(cmd *cobra.Command) {
	c.flags.addFlags(cmd)
	flags := cmd.Flags()
	flags.IntVar(&c.limit, "limit", 0, c.verb+" this many at most, the oldest (default: all of them)")
	flags.BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	flags.BoolVar(&c.dryRun, "dry-run", false, "change nothing, show what would be done")
	flags.BoolVar(&c.empty.exit, "exit-empty", false, "exit with 4 when there is nothing to "+c.verb)
}

// read makes sense of the command line. Flags that choose among all, the filter's and those in more, do not go with IDs.
func (c *choice) read(cmd *cobra.Command, args []string, more ...string) error {
	c.queue, c.group = args[0], args[1]
	for _, id := range args[2:] {
		if !slices.Contains(c.ids, id) {
			c.ids = append(c.ids, id)
		}
	}
	if err := checkLimit(cmd, c.limit); err != nil {
		return err
	}
	var err error
	if c.filter, err = c.flags.filter(cmd); err != nil || len(c.ids) == 0 {
		return err
	}
	for _, name := range slices.Concat(filterNames, []string{"limit"}, more) {
		if cmd.Flags().Changed(name) {
			return usageError{fmt.Errorf("--%s is for choosing among all dead letters: give IDs or it, not both", name)}
		}
	}
	return nil
}

// String says what is chosen from. Names on the command line may hold anything.
func (c *choice) String() string {
	return fmt.Sprintf("queue %s, group %s", printable(c.queue), printable(c.group))
}

// choiceArguments are QUEUE GROUP [ID...].
func choiceArguments(cmd *cobra.Command, args []string) error {
	if err := arguments(2, "QUEUE", "GROUP")(cmd, args[:min(2, len(args))]); err != nil {
		return err
	}
	return checkIDs(cmd, args)
}

var deadID = regexp.MustCompile(`^\d{1,20}-\d{1,20}$`)

// checkIDs checks the arguments after QUEUE and GROUP.
func checkIDs(_ *cobra.Command, args []string) error {
	for _, id := range args[min(2, len(args)):] {
		if !deadID.MatchString(id) {
			return fmt.Errorf("%q is no id of a dead letter, such as 1735689600000-0", id)
		}
	}
	return nil
}
