package luagen

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// position is a line of a script or include file.
type position struct {
	file string
	line int
}

func (p position) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

type problem struct {
	position
	text string
}

// problems collects what is wrong, so that one run reports all of it.
type problems struct{ list []problem }

func (ps *problems) add(at position, format string, args ...any) {
	ps.list = append(ps.list, problem{at, fmt.Sprintf(format, args...)})
}

// in reports whether file has a problem.
func (ps *problems) in(file string) bool {
	return slices.ContainsFunc(ps.list, func(p problem) bool { return p.file == file })
}

// err joins the problems in the order of the files. An include is checked with
// every script that uses it, so the same problem may have been added often.
func (ps *problems) err() error {
	slices.SortFunc(ps.list, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	var errs []error
	for _, p := range slices.Compact(ps.list) {
		errs = append(errs, fmt.Errorf("%s: %s", p.position, p.text))
	}
	return errors.Join(errs...)
}
