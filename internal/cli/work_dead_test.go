//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Dead letters that no command has judged are told like others: what is no message of ours, and what workers and others lost.
func TestWorkTellsOfDeadLettersWithoutCommand(t *testing.T) {
	t.Parallel()
	for _, inJSON := range []bool{true, false} {
		p := sharedPlace(t)
		b := p.redis.B()
		key := p.prefix + "{q}"
		add := func(field string) string {
			id, err := p.redis.Do(t.Context(), b.Xadd().Key(key).Id("*").FieldValue().FieldValue(field, "x").Build()).ToString()
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		abandoned, deleted := add("body"), add("body")
		for _, err := range []error{
			p.redis.Do(t.Context(), b.XgroupCreate().Key(key).Group("g").Id("0").Build()).Error(),
			p.redis.Do(t.Context(), b.Xreadgroup().Group("g", "gone~100").Streams().Key(key).Id(">").Build()).Error(),
			p.redis.Do(t.Context(), b.Xdel().Key(key).Id(deleted).Build()).Error(),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		foreign := add("text")
		flags := []string{"--exit-when-empty", "--lost-leases", "0", "--visibility-timeout", "100ms"}
		if inJSON {
			flags = append(flags, "--json")
		}
		got := finish(t, p.work(t, `echo ran`, flags...))
		if now := p.counters(t); got.code != 0 || now != (counters{dead: 3}) || strings.Contains(got.stdout+got.stderr, "ran\n") {
			t.Fatalf("exit code %d, messages %+v, stdout %q", got.code, now, got.stdout)
		}
		if !strings.Contains(got.stderr, "dead=3 ") && !strings.Contains(got.stderr, `"dead":3,`) {
			t.Errorf("the last line of the log does not count them: %s", got.stderr)
		}
		want := map[string]string{
			abandoned: "lost-lease: 1 worker vanished with it",
			deleted:   "body-lost: the entry was deleted while it was pending",
			foreign:   `no-body: the entry has no field "body", so there is nothing to run the command with`,
		}
		if !inJSON {
			for id, why := range want {
				why = strings.ReplaceAll(why, `"`, `\"`)
				if line := "id=" + id + " attempt=1 verdict=dead error=\"" + why + "\"\n"; strings.Count(got.stderr, line) != 1 {
					t.Errorf("the log does not say once: %s", line)
				}
			}
			continue
		}
		said := map[string]string{}
		for _, row := range deliveries(t, got.stdout) {
			if row.ID != row.OriginalID || row.Attempt != 1 || row.Verdict != fateDead || row.ExitCode != nil {
				t.Errorf("%+v", row)
			}
			said[row.OriginalID] = row.Error
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("(-want +said):\n%s", diff)
		}
	}
}
