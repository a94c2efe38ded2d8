package cli

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// TestTopKeepsTheFrequentAmongMany counts more kinds of errors than are kept apart, the frequent ones last of all.
func TestTopKeepsTheFrequentAmongMany(t *testing.T) {
	t.Parallel()
	tally := &tallied{groups: map[topKey]*topGroup{}}
	start := time.UnixMilli(1_700_000_000_000)
	died := 0
	add := func(text string) {
		died++
		tally.add(&xstreamq.DeadMessage{
			ID: fmt.Sprintf("%d-0", died), Reason: xstreamq.Failed, Error: text, At: start.Add(time.Duration(died) * time.Second),
		})
	}
	kinds := 5*topKept + 7
	for i := range kinds {
		add("rare " + letters(i))
		if len(tally.groups) > 2*topKept {
			t.Fatalf("%d groups are kept", len(tally.groups))
		}
		if i%10 == 0 {
			add("frequent")
		}
	}
	groups := tally.sorted()
	if g := groups[0]; g.text != "frequent" || g.count != (kinds+9)/10 || !g.first.Equal(start.Add(2*time.Second)) {
		t.Errorf("the first group is %+v", g)
	}
	other, sum := groups[len(groups)-1], 0
	for _, g := range groups {
		sum += g.count
	}
	if other.text != "(other)" || other.count < 2*topKept || sum != died {
		t.Errorf("the last group is %+v, the sum of all %d, want %d", other, sum, died)
	}
}

// letters writes a number without digits.
func letters(n int) string {
	s := ""
	for ; n > 0; n /= 26 {
		s += string(rune('a' + n%26))
	}
	return s + "."
}

func TestTopTakesFirstLastAndExampleFromTheTimesOfDeath(t *testing.T) {
	t.Parallel()
	tally := &tallied{groups: map[topKey]*topGroup{}}
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	for _, d := range []xstreamq.DeadMessage{
		{ID: "2-0", Reason: xstreamq.Failed, Error: "try 1", At: at(200)},
		{ID: "3-0", Reason: xstreamq.Failed, Error: "try 2", At: at(100)},
		{ID: "4-0", Reason: xstreamq.Failed, Error: "try 3", At: at(150)},
		{ID: "5-0", Reason: xstreamq.Rejected, Error: "try 4", At: at(300)},
	} {
		tally.add(&d)
	}
	groups := tally.sorted()
	if len(groups) != 2 {
		t.Fatalf("%d groups, want one of each reason", len(groups))
	}
	if g := groups[0]; g.count != 3 || !g.first.Equal(at(100)) || !g.last.Equal(at(200)) || g.example != "2-0" || g.text != "try <n>" {
		t.Errorf("the first group is %+v", g)
	}
}

// What another program stored need not be UTF-8: --json shows its bytes.
func TestReasonsOfAnyBytes(t *testing.T) {
	t.Parallel()
	prefix, client := redistest.Prefix(t), redistest.Client(t)
	key := keys.ForGroup(prefix, "q", "g").DLQ
	do(t, client, "XADD", key, "1-0", "oid", "1-0", "body", "x", "reason", "a\xff", "from", "f\xfe")
	do(t, client, "XADD", key, "2-0", "oid", "2-0", "body", "x", "reason", "a\xfe")
	for name, args := range map[string][]string{
		"dlq top": {"dlq", "top", "q", "g"}, "dlq show": {"dlq", "show", "q", "g", "1-0"}, "dlq ls": {"dlq", "ls", "q", "g"}, "peek": {"peek", "q", "g", "--from", "dlq"},
	} {
		got := run(t, append(args, "--json", "--url", redistest.URL(t), "--prefix", prefix)...)
		for _, reason := range []string{"a\xff", "a\xfe"} {
			if name == "dlq show" && reason != "a\xff" {
				continue
			}
			want := `"reason_base64":"` + base64.StdEncoding.EncodeToString([]byte(reason)) + `"`
			if got.code != 0 || !strings.Contains(got.stdout, want) || strings.Contains(got.stdout, `\ufffd`) || strings.Contains(got.stdout, "\ufffd") {
				t.Errorf("%s: %+v, want %s", name, got, want)
			}
		}
	}
}
