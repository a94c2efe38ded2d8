package demo

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
)

func TestReportText(t *testing.T) {
	t.Parallel()
	report := &Report{
		Payloads: 3, Accounted: true, Seconds: 1.25,
		Groups: []GroupReport{{
			Group: "g", Published: 5, Handled: 2, Retried: 7, Recovered: 4, Released: 9,
			Dead: map[xstreamq.Reason]int{xstreamq.Undecodable: 1, xstreamq.Failed: 2},
		}},
	}
	const want = `
+-----------------------------------------------------------------------------+
| group g                                                                     |
+-----------+---------+---------+-----------+--------+-------------+----------+
| published | handled | retried | recovered |  dead: |       dead: | released |
|           |         |         | from lost | failed | undecodable |          |
|           |         |         |    leases |        |             |          |
+-----------+---------+---------+-----------+--------+-------------+----------+
|         5 |       2 |       7 |         4 |      2 |           1 |        9 |
+-----------+---------+---------+-----------+--------+-------------+----------+

every message is accounted for: 3 payloads, in 1 groups, in 1.2 s
`
	if diff := cmp.Diff(want, printed(t, report)); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestReportOfProblems(t *testing.T) {
	t.Parallel()
	report := &Report{Payloads: 3}
	for i := range maxProblems + 2 {
		report.Problems = append(report.Problems, fmt.Sprintf("problem %d", i+1))
	}
	got := printed(t, report)
	if !strings.HasPrefix(got, "\nNOT every message is accounted for; 22 problems:\n  problem 1\n") ||
		!strings.HasSuffix(got, "  problem 20\n  and 2 more\n") {
		t.Errorf("text:\n%s", got)
	}
}

func printed(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
