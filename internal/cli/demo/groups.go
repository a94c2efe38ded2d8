package demo

import (
	"fmt"

	"github.com/xstreamq/xstreamq"
)

// group is one subscriber service of the demonstration, and what goes wrong in it.
type group struct {
	name   string
	flaky  string // the event whose handler fails twice and then succeeds
	poison string // the event whose handler always fails
}

var groups = []group{
	{name: "indexer", flaky: "release", poison: "repository_import"},
	{name: "notifier", flaky: "issue_comment", poison: "org_block"},
}

// failures of a flaky event before it succeeds; maxRetries leaves room for them.
const (
	failures   = 2
	maxRetries = 3
)

// fail is what the handler of an event comes to.
func (g group) fail(event string, retries int) error {
	switch {
	case event == g.poison:
		return fmt.Errorf("%s never accepts %s", g.name, event)
	case event == g.flaky && retries < failures:
		return fmt.Errorf("%s is not ready for %s yet", g.name, event)
	}
	return nil
}

// fate is what must become of a message in the end: the reason why it is a dead letter, or empty when it must be handled.
func (g group) fate(event string) xstreamq.Reason {
	switch event {
	case g.poison:
		return xstreamq.Failed
	case foreign:
		return xstreamq.Undecodable
	}
	return ""
}
