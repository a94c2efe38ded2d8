package cli

import (
	"errors"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// parseFilter reads a command line that has the filter's flags alone.
func parseFilter(t *testing.T, args ...string) (xstreamq.DeadFilter, error) {
	t.Helper()
	var f filterFlags
	var got xstreamq.DeadFilter
	cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(cmd *cobra.Command, _ []string) (err error) {
		got, err = f.filter(cmd)
		return err
	}}
	f.addFlags(cmd)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return got, err
}

func TestFilterFlagsBecomeConditions(t *testing.T) {
	t.Parallel()
	got, err := parseFilter(t, "--reason", "failed,no-body", "--reason=lost-lease", "--error", "a, b", "--error-regexp", "^x.*y$",
		"--older-than", "2d", "--newer-than=30d", "--min-attempts=2", "--max-attempts=9",
		"--header", "tenant=a=b", "--header=trace", "--json-path", `$.a["x=\"y="].b=c=d`, "--json-path=id")
	if err != nil {
		t.Fatal(err)
	}
	want := xstreamq.DeadFilter{
		Reasons: []xstreamq.Reason{xstreamq.Failed, xstreamq.NoBody, xstreamq.LostLease}, Error: "a, b", ErrorPattern: regexp.MustCompile("^x.*y$"),
		OlderThan: 48 * time.Hour, NewerThan: 30 * 24 * time.Hour, MinAttempts: 2, MaxAttempts: 9,
		Header: map[string]string{"tenant": "a=b", "trace": ""},
		JSON:   map[string]string{`$.a["x=\"y="].b`: "c=d", "id": ""},
	}
	same := cmp.Comparer(func(a, b *regexp.Regexp) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("filter (-want +got):\n%s", diff)
	}
	if got, err = parseFilter(t); err != nil || !cmp.Equal(got, xstreamq.DeadFilter{}, same) {
		t.Errorf("without flags: %+v, %v", got, err)
	}
}

func TestFilterFlagsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--reason=broken"}, {"--reason="}, {"--error="}, {"--error-regexp="}, {"--error-regexp=("},
		{"--older-than=2d", "--newer-than=1d"}, {"--min-attempts=0"}, {"--max-attempts=-1"}, {"--min-attempts=3", "--max-attempts=2"},
		{"--header=="}, {"--header=a="}, {"--header=a", "--header=a=1"}, {"--json-path="}, {"--json-path=a="}, {"--json-path==1"},
	} {
		if got, err := parseFilter(t, args...); !errors.As(err, new(usageError)) {
			t.Errorf("%q: %+v, error %v; want a usage error", args, got, err)
		}
	}
}

func TestIDsAreComparedAsNumbers(t *testing.T) {
	t.Parallel()
	inOrder := []string{"0-1", "9-0", "9-9", "9-10", "10-0", "1735689600000-0", "18446744073709551615-18446744073709551615"}
	for i, a := range inOrder {
		for j, b := range inOrder {
			if got := compareIDs(a, b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("compareIDs(%s, %s) = %d", a, b, got)
			}
		}
	}
}
