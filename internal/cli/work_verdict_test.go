//go:build unix

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// byBody does what the body says.
const byBody = `read -r what; case $what in
	[0-9]*) echo "said $what" >&2; exit $what;;
	signal) kill -USR1 $$;;
esac`

// TestWorkVerdicts has a command end in every way there is, and looks at what is printed and at what is in Redis.
func TestWorkVerdicts(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	code := func(n int) *int { return &n }
	want := map[string]deliveryRow{}
	for body, row := range map[string]deliveryRow{
		"0":      {Verdict: fateAck, ExitCode: code(0)},
		"":       {Verdict: fateAck, ExitCode: code(0)},
		"1":      {Verdict: fateRetry, ExitCode: code(1), Error: "exit status 1: said 1"},
		"3":      {Verdict: fateRetry, ExitCode: code(3), Error: "exit status 3: said 3"},
		"65":     {Verdict: fateDead, ExitCode: code(65), Error: "exit status 65: said 65"},
		"75":     {Verdict: fateRelease, ExitCode: code(75), Error: "exit status 75: said 75"},
		"143":    {Verdict: fateRetry, ExitCode: code(143), Error: "exit status 143: said 143"},
		"255":    {Verdict: fateRetry, ExitCode: code(255), Error: "exit status 255: said 255"},
		"signal": {Verdict: fateRetry, Error: "signal: user defined signal 1"},
	} {
		row.Attempt = 1
		want[p.send(t, body+"\n")] = row
	}
	got := finish(t, p.work(t, byBody, "--json", "--max", fmt.Sprint(len(want)), "--backoff", "1h"))
	if got.code != 0 {
		t.Errorf("exit code %d, want 0 whatever the verdicts", got.code)
	}
	rows := map[string]deliveryRow{}
	for _, row := range deliveries(t, got.stdout) {
		if row.ID != row.OriginalID {
			t.Errorf("first delivery of %s has id %s", row.OriginalID, row.ID)
		}
		rows[row.ID] = row
	}
	if diff := cmp.Diff(want, rows, cmpopts.IgnoreFields(deliveryRow{}, "ID", "OriginalID", "DurationMS")); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(counters{backoff: 6, dead: 1}, p.counters(t), cmp.AllowUnexported(counters{})); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	dead := p.entries(t, ".g.dlq")[0].FieldValues
	if dead["reason"] != "rejected" || dead["err"] != "exit status 65: said 65" || dead["rc"] != "1" {
		t.Errorf("the dead letter is %q", dead)
	}
}

// TestWorkBudgets fails every time: --retries 2 makes three attempts, and 75 never ends.
func TestWorkBudgets(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	failing := p.send(t, "3\n")
	got := finish(t, p.work(t, byBody, "--json", "--exit-when-empty", "--retries", "2", "--backoff", "20ms"))
	var seen []string
	for _, row := range deliveries(t, got.stdout) {
		if row.OriginalID != failing {
			t.Errorf("original id %s, want %s", row.OriginalID, failing)
		}
		seen = append(seen, fmt.Sprint(row.Attempt, " ", row.Verdict))
	}
	if diff := cmp.Diff([]string{"1 retry", "2 retry", "3 dead"}, seen); diff != "" || got.code != 0 {
		t.Errorf("exit code %d, deliveries (-want +got):\n%s", got.code, diff)
	}
	if dead := p.entries(t, ".g.dlq")[0].FieldValues; dead["reason"] != "failed" || dead["rc"] != "3" {
		t.Errorf("the dead letter is %q", dead)
	}

	p.send(t, "75\n")
	got = finish(t, p.work(t, byBody, "--json", "--max", "8", "--retries", "0", "--backoff", "1ms"))
	rows := deliveries(t, got.stdout)
	for _, row := range rows {
		if row.Verdict != fateRelease || row.Attempt != 1 {
			t.Errorf("a delivery that was given back: %+v", row)
		}
	}
	if len(rows) != 8 {
		t.Errorf("%d deliveries, want 8", len(rows))
	}
}

// TestWorkText prints no JSON: the command's output alone is on the standard output, and what went wrong is in the log, unable to move
// the cursor.
func TestWorkText(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	id := p.send(t, "a body without an end of line")
	got := finish(t, p.work(t, `cat; printf '\033[2Jbroken' >&2; exit 3`, "--max", "1"))
	if got.stdout != "a body without an end of line" {
		t.Errorf("stdout %q", got.stdout)
	}
	if log := strings.Replace(got.stderr, "\x1b[2Jbroken", "", 1); strings.Contains(log, "\x1b") ||
		!strings.Contains(log, `msg="message not acked" id=`+id+` attempt=1 verdict=retry error="exit status 3: \x1b[2Jbroken"`) {
		t.Errorf("stderr %q", got.stderr)
	}
}

// TestWorkErrorText looks at how much of the standard error travels with a message: the last KiB, whole characters, valid.
func TestWorkErrorText(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	got := finish(t, p.work(t, `i=0; while [ $i -lt 2000 ]; do printf 'é'; i=$((i+1)); done >&2; printf '\377\n\n' >&2; exit 65`, "--max", "1"))
	dead := p.entries(t, ".g.dlq")[0].FieldValues
	// 1,024 bytes less the two line ends and the broken byte, and less half a character.
	if want := "exit status 65: " + strings.Repeat("é", 510) + "?"; dead["err"] != want {
		t.Errorf("error of %d bytes %q", len(dead["err"]), dead["err"])
	}
	if passed := strings.Count(got.stderr, "é") - 510; passed != 2000 || !strings.Contains(got.stderr, "\xff") {
		t.Errorf("%d characters of 2,000 passed through", passed)
	}
}

// TestWorkEnvironment compares what a command is told with the message.
func TestWorkEnvironment(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	id := p.send(t, "\x00\xff\n\r\n\x80", "tenant", "acme", "trace-parent", "1", "TRACE_PARENT", "0", "na\xffme", "v", "nul", "a\x00b",
		"é", "ü", "quoted", `"<&`, "empty", "")
	cmd := p.work(t, `cat >"$DIR/body"; env -0 >"$DIR/env"`, "--max", "1")
	cmd.Env = append(cmd.Env, "XSTREAMQ_HEADER_LEFT_OVER=x", "XSTREAMQ_HEADERS_BASE64=x", "XSTREAMQ_HEADERS=x", "KEPT=yes")
	if got := finish(t, cmd); got.code != 0 {
		t.Fatalf("exit code %d", got.code)
	}
	body, err := os.ReadFile(filepath.Join(cmd.Dir, "body"))
	if err != nil || string(body) != "\x00\xff\n\r\n\x80" {
		t.Errorf("the body arrived as %q, %v", body, err)
	}
	env, err := os.ReadFile(filepath.Join(cmd.Dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for variable := range strings.SplitSeq(string(env), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "XSTREAMQ_") && name != "XSTREAMQ_URL" && !strings.Contains(name, "TEST") || name == "KEPT" {
			got[name] = value
		}
	}
	var ms int64
	if _, err := fmt.Sscanf(id, "%d-", &ms); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"KEPT": "yes", "XSTREAMQ_ID": id, "XSTREAMQ_ORIGINAL_ID": id, "XSTREAMQ_QUEUE": "q", "XSTREAMQ_GROUP": "g",
		"XSTREAMQ_ATTEMPT": "1", "XSTREAMQ_RETRIES": "0", "XSTREAMQ_LOST_LEASES": "0", "XSTREAMQ_PUBLISHED_AT": publishedAt(ms),
		"XSTREAMQ_HEADER_TENANT": "acme", "XSTREAMQ_HEADER_TRACE_PARENT": "0", "XSTREAMQ_HEADER_NA_ME": "v",
		"XSTREAMQ_HEADER__": "ü", "XSTREAMQ_HEADER_QUOTED": `"<&`, "XSTREAMQ_HEADER_EMPTY": "",
		"XSTREAMQ_HEADERS":        `{"TRACE_PARENT":"0","empty":"","nul":"a\u0000b","quoted":"\"<&","tenant":"acme","trace-parent":"1","é":"ü"}`,
		"XSTREAMQ_HEADERS_BASE64": `{"bmH/bWU=":"dg=="}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func publishedAt(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000") + "Z"
}
