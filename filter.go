package xstreamq

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/jsonpath"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// DeadFilter chooses dead letters. Every condition that is set must hold; the zero value chooses all.
type DeadFilter struct {
	// Reasons: one of them.
	Reasons []Reason
	// Error is a part of the error.
	Error string
	// ErrorPattern is found in the error.
	ErrorPattern *regexp.Regexp
	// OlderThan and NewerThan: it died at least, or less than, this long ago by the server's clock at the beginning of the
	// call. 0: any. Negative is an error. A dead letter that does not say when it died goes by its id.
	OlderThan, NewerThan time.Duration
	// MinAttempts and MaxAttempts bound DeadMessage.Attempts. 0: any. Negative is an error.
	MinAttempts, MaxAttempts int
	// Header: these headers with these values. An empty value asks only that the header is there.
	Header map[string]string
	// JSON: the body is JSON with these values at these paths. A path is $ followed by .name, ["name"] or [index], such as
	// $.order.lines[0].sku; the leading $ or $. may be left out. Strings are compared as they are, all else as compact
	// JSON: numbers as they were written, the names of an object in order. An empty value asks only that the path leads
	// somewhere.
	JSON map[string]string
	// Match is any other condition. It must not keep what it is given.
	Match func(*DeadMessage) bool
}

// deadChooser is a DeadFilter that was checked.
type deadChooser struct {
	DeadFilter
	at    []wantedValue
	begun time.Time // server time; set if the filter asks for ages
}

type wantedValue struct {
	path  jsonpath.Path
	value string // empty = any
}

// compile reports every mistake at once.
func (f DeadFilter) compile() (*deadChooser, error) {
	errs := []error{
		notNegative("OlderThan", f.OlderThan), notNegative("NewerThan", f.NewerThan),
		countNotNegative("MinAttempts", f.MinAttempts), countNotNegative("MaxAttempts", f.MaxAttempts),
	}
	check := func(bad bool, what string) {
		if bad {
			errs = append(errs, errors.New(what))
		}
	}
	check(f.MaxAttempts > 0 && f.MinAttempts > f.MaxAttempts, "MinAttempts must not be more than MaxAttempts")
	check(f.NewerThan > 0 && f.OlderThan >= f.NewerThan, "OlderThan must be less than NewerThan")
	c := &deadChooser{DeadFilter: f}
	for _, path := range slices.Sorted(maps.Keys(f.JSON)) {
		p, err := jsonpath.Parse(path)
		if err != nil {
			errs = append(errs, err)
		}
		c.at = append(c.at, wantedValue{p, f.JSON[path]})
	}
	return c, configError("DeadFilter", errs)
}

func countNotNegative(name string, n int) error {
	if n < 0 {
		return fmt.Errorf("%s must not be negative", name)
	}
	return nil
}

func (c *deadChooser) byAge() bool { return c.OlderThan > 0 || c.NewerThan > 0 }

// chooses asks what is cheap first.
func (c *deadChooser) chooses(d *DeadMessage) bool {
	switch {
	case len(c.Reasons) > 0 && !slices.Contains(c.Reasons, d.Reason):
	case !strings.Contains(d.Error, c.Error):
	case d.Attempts() < c.MinAttempts || c.MaxAttempts > 0 && d.Attempts() > c.MaxAttempts:
	case c.byAge() && !c.ofAge(d):
	case !c.hasHeaders(d):
	case c.ErrorPattern != nil && !c.ErrorPattern.MatchString(d.Error):
	case !c.hasValues(d):
	case c.Match != nil && !c.Match(d):
	default:
		return true
	}
	return false
}

func (c *deadChooser) ofAge(d *DeadMessage) bool {
	age := c.begun.Sub(diedAt(d))
	return (c.OlderThan == 0 || age >= c.OlderThan) && (c.NewerThan == 0 || age < c.NewerThan)
}

// diedAt goes by the id where a stranger's dead letter says nothing: that is when it came there.
func diedAt(d *DeadMessage) time.Time {
	if !d.At.IsZero() {
		return d.At
	}
	const latest = 1 << 53 // as a time far from any now, and still a time
	id, _ := wire.ParseID(d.ID)
	return time.UnixMilli(int64(min(id.Ms, latest)))
}

func (c *deadChooser) hasHeaders(d *DeadMessage) bool {
	for name, want := range c.Header {
		if value, ok := d.Header[name]; !ok || want != "" && value != want {
			return false
		}
	}
	return true
}

func (c *deadChooser) hasValues(d *DeadMessage) bool {
	if len(c.at) == 0 {
		return true
	}
	body, ok := jsonpath.Decode(d.Body)
	if !ok {
		return false
	}
	for _, w := range c.at {
		if value, found := body.Find(w.path); !found || w.value != "" && value != w.value {
			return false
		}
	}
	return true
}
