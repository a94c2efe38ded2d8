package xstreamq_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const cutPageName = "docs/cut-everywhere.md"

var updateCuts = flag.Bool("update", false, "write what TestCutEverywhere finds into "+cutPageName)

// The table stands between these two lines.
const (
	cutTableBegin = "<!-- the table is written by: go test -run TestCutEverywhere . -update -->\n"
	cutTableEnd   = "<!-- end of the table -->\n"
)

// cutResults are what came of cuts, by point and kind.
type cutResults map[string]map[string]string

func (r cutResults) note(point, kind, result string) {
	if r[point] == nil {
		r[point] = map[string]string{}
	}
	r[point][kind] = result
}

func (r cutResults) len() (n int) {
	for _, of := range r {
		n += len(of)
	}
	return n
}

// cutPage is the page that lists every cut and its result.
type cutPage struct {
	head, table, tail string
	results           cutResults
}

func readCutPage(t *testing.T) cutPage {
	t.Helper()
	head, rest, found := strings.Cut(readDoc(t, cutPageName), cutTableBegin)
	table, tail, ended := strings.Cut(rest, cutTableEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for its table", cutPageName)
	}
	p := cutPage{head, table, tail, cutResults{}}
	point := ""
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || cells[0] == "point" {
			continue
		}
		if name := strings.TrimSpace(cells[0]); name != `"` {
			point = name
		}
		for kind := range strings.SplitSeq(cells[2], ", ") {
			p.results.note(point, kind, cells[3])
		}
	}
	return p
}

// compare fails the test when the table is not what was seen, or writes it anew.
func (p cutPage) compare(t *testing.T, points []cutPoint, seen cutResults) {
	t.Helper()
	table := cutTable(points, seen)
	if *updateCuts {
		if err := os.WriteFile(cutPageName, []byte(p.head+cutTableBegin+table+cutTableEnd+p.tail), 0o644); err != nil { //nolint:gosec // a page for all to read
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(p.table, table); diff != "" {
		t.Errorf("%s: -written +seen, -update writes it:\n%s", cutPageName, diff)
	}
}

// cutTable has a row for each point and result; kinds with the same result share one.
func cutTable(points []cutPoint, seen cutResults) string {
	var b strings.Builder
	b.WriteString("| point | request | cut | what came of it |\n|---|---|---|---|\n")
	for _, p := range points {
		name, request := p.name, p.request.name
		done := map[string]bool{}
		for _, k := range cutTableOrder {
			result := seen[p.name][k]
			if done[result] {
				continue
			}
			done[result] = true
			var kinds []string
			for _, other := range cutTableOrder {
				if seen[p.name][other] == result {
					kinds = append(kinds, other)
				}
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, request, strings.Join(kinds, ", "), result)
			name, request = `"`, `"`
		}
	}
	return b.String()
}

// cutTableOrder is the order in which a request meets the kinds of cuts.
var cutTableOrder = []string{"before", "after", "half", "end", "swallow"}
