package cli

import (
	"bufio"
	"fmt"
	"strings"
)

// confirm asks on the terminal whether to go on with what cannot be undone. what is a sentence that says what would be done, such as
// "purge 12 dead letters of orders, group shipping". yes is the --yes flag: it is not asked then. Without a terminal it refuses: usageError.
// An answer other than yes is errQuiet. It ends with the command.
func (a *app) confirm(what string, yes bool) error {
	if yes {
		return nil
	}
	if !isTerminal(a.in) || !isTerminal(a.err) {
		return usageError{fmt.Errorf("refusing to %s unasked: there is no terminal to ask on; add --yes", what)}
	}
	fmt.Fprintf(a.err, "%s? [y/N] ", printable(what))
	answered := make(chan string, 1)
	go func() {
		answer, err := bufio.NewReader(a.in).ReadString('\n')
		if err != nil {
			answer = "" // no whole line is no answer
			fmt.Fprintln(a.err)
		}
		answered <- answer
	}()
	select {
	case answer := <-answered:
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return nil
		}
		fmt.Fprintln(a.err, "nothing was changed")
		return errQuiet
	case <-a.ctx.Done():
		fmt.Fprintln(a.err)
		return a.ctx.Err()
	}
}
