package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// reasons are those that the library gives.
var reasons = []string{
	string(xstreamq.Failed), string(xstreamq.LostLease), string(xstreamq.Rejected), string(xstreamq.Undecodable),
	string(xstreamq.NoBody), string(xstreamq.BodyLost),
}

// filterFlags choose dead letters. Each one that is given must hold.
type filterFlags struct {
	reasons                  []string
	text, pattern            string
	olderThan, newerThan     span
	minAttempts, maxAttempts int
	headers, paths           []string
}

// filterNames are the flags' names.
var filterNames = []string{
	"reason", "error", "error-regexp", "older-than", "newer-than", "min-attempts", "max-attempts", "header", "json-path",
}

func (f *filterFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.reasons, "reason", nil, "dead for this reason: "+strings.Join(reasons, ", ")+" (repeatable: one of them)")
	flags.StringVar(&f.text, "error", "", "the error contains this `text`")
	flags.StringVar(&f.pattern, "error-regexp", "", "the error matches this regular expression")
	flags.Var(&f.olderThan, "older-than", "dead for at least this long, such as 90s, 12h or 7d")
	flags.Var(&f.newerThan, "newer-than", "dead for less than this")
	flags.IntVar(&f.minAttempts, "min-attempts", 0, "delivered at least so often")
	flags.IntVar(&f.maxAttempts, "max-attempts", 0, "delivered at most so often")
	flags.StringArrayVar(&f.headers, "header", nil, "with this header, as `name[=value]` (repeatable: all of them)")
	flags.StringArrayVar(&f.paths, "json-path", nil, "the body is JSON with this, as `path[=value]` such as $.order.id=42 (repeatable: all of them)")
	err := cmd.RegisterFlagCompletionFunc("reason", cobra.FixedCompletions(reasons, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag is defined above
	}
}

// filter is what the flags ask for. Its errors are of the command line.
func (f *filterFlags) filter(cmd *cobra.Command) (xstreamq.DeadFilter, error) {
	chosen := xstreamq.DeadFilter{
		Error: f.text, OlderThan: time.Duration(f.olderThan), NewerThan: time.Duration(f.newerThan),
		MinAttempts: f.minAttempts, MaxAttempts: f.maxAttempts,
	}
	err := f.check(cmd)
	if err != nil {
		return chosen, usageError{err}
	}
	for _, r := range f.reasons {
		chosen.Reasons = append(chosen.Reasons, xstreamq.Reason(r))
	}
	if f.pattern != "" {
		if chosen.ErrorPattern, err = regexp.Compile(f.pattern); err != nil {
			return chosen, usageError{fmt.Errorf("--error-regexp: %w", err)}
		}
	}
	if chosen.Header, err = conditions("--header", f.headers, strings.IndexByte); err != nil {
		return chosen, usageError{err}
	}
	if chosen.JSON, err = conditions("--json-path", f.paths, endOfPath); err != nil {
		return chosen, usageError{err}
	}
	return chosen, nil
}

// filterError tells a filter that cannot work, such as by its JSON path, from what went wrong with Redis.
func filterError(err error) error {
	if errors.Is(err, xstreamq.ErrInvalidConfig) {
		return usageError{err}
	}
	return err
}

func (f *filterFlags) check(cmd *cobra.Command) error {
	for _, r := range f.reasons {
		if !slices.Contains(reasons, r) {
			return fmt.Errorf("--reason %q is none of %s", r, strings.Join(reasons, ", "))
		}
	}
	// A variable of a script that is empty must not widen the choice.
	for name, empty := range map[string]bool{"reason": len(f.reasons) == 0, "error": f.text == "", "error-regexp": f.pattern == ""} {
		if empty && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is empty", name)
		}
	}
	if f.olderThan > 0 && f.newerThan > 0 && f.olderThan >= f.newerThan {
		return errors.New("--older-than is not below --newer-than: nothing can be both")
	}
	for name, n := range map[string]int{"min-attempts": f.minAttempts, "max-attempts": f.maxAttempts} {
		if cmd.Flags().Changed(name) && n < 1 {
			return fmt.Errorf("--%s must be 1 or more", name)
		}
	}
	if f.maxAttempts > 0 && f.minAttempts > f.maxAttempts {
		return errors.New("--min-attempts is above --max-attempts")
	}
	return nil
}

// conditions splits name=value. Without a value it is enough that there is something of that name.
func conditions(flag string, given []string, find func(s string, c byte) int) (map[string]string, error) {
	var m map[string]string
	for _, g := range given {
		name, value, wanted := g, "", false
		if at := find(g, '='); at >= 0 {
			name, value, wanted = g[:at], g[at+1:], true
		}
		_, twice := m[name]
		switch {
		case name == "":
			return nil, fmt.Errorf("%s %q names nothing", flag, g)
		case wanted && value == "":
			return nil, fmt.Errorf("%s %q has no value; leave the = out to ask only that it is there", flag, g)
		case twice:
			return nil, fmt.Errorf("%s asks for %q twice", flag, name)
		}
		put(&m, name, value)
	}
	return m, nil
}

// endOfPath finds the first = that is not inside of ["..."].
func endOfPath(path string, c byte) int {
	inQuotes := false
	for i := 0; i < len(path); i++ {
		switch {
		case inQuotes && path[i] == '\\':
			i++
		case path[i] == '"':
			inQuotes = !inQuotes
		case path[i] == c && !inQuotes:
			return i
		}
	}
	return -1
}
