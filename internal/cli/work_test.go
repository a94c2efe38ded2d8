//go:build unix

package cli

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func TestWorkMax(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	const messages, most = 60, 25
	for range messages {
		p.send(t, "")
	}
	cmd := p.work(t, `mktemp "$DIR/run.XXXXXX" >/dev/null; sleep 0.0$(($$ % 9)); exit $(($$ % 2))`,
		"--max", strconv.Itoa(most), "--concurrency", "8", "--prefetch", "30", "--backoff", "1h", "--json")
	got := finish(t, cmd)
	runs, err := filepath.Glob(cmd.Dir + "/run.*")
	if err != nil || len(runs) != most || got.code != 0 {
		t.Errorf("exit code %d, %d commands, want %d", got.code, len(runs), most)
	}
	acked, retried := 0, 0
	for _, row := range deliveries(t, got.stdout) {
		switch row.Verdict {
		case fateAck:
			acked++
		case fateRetry:
			retried++
		default:
			t.Errorf("delivery %+v", row)
		}
	}
	now := p.counters(t)
	if acked+retried != most || now.pending+now.dead != 0 || now.retry+now.backoff+now.undelivered != int64(messages-acked) {
		t.Errorf("%d acked, %d retried, messages %+v", acked, retried, now)
	}
	for _, e := range p.entries(t, ".g.retry") {
		if e.FieldValues["rc"] != "" || e.FieldValues["lc"] != "" {
			t.Errorf("what was read and not begun has spent a budget: %q", e.FieldValues)
		}
	}
}

func TestWorkMaxIsPatient(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	p.send(t, "")
	got := finish(t, p.work(t, `sleep 1; echo done`, "--max", "1", "--drain-timeout", "10ms"))
	if got.code != 0 || got.stdout != "done\n" || p.counters(t) != (counters{}) {
		t.Errorf("exit code %d, stdout %q, messages %+v", got.code, got.stdout, p.counters(t))
	}
}

func TestWorkExitWhenEmpty(t *testing.T) {
	t.Parallel()
	p := sharedPlace(t)
	for range 5 {
		p.send(t, "")
	}
	got := finish(t, p.work(t, `[ "$XSTREAMQ_RETRIES" -gt 1 ]`, "--exit-when-empty", "--json", "--backoff", "200ms", "--max", "16"))
	if rows := deliveries(t, got.stdout); len(rows) != 15 || got.code != 0 || p.counters(t) != (counters{}) {
		t.Errorf("exit code %d, %d deliveries, messages %+v", got.code, len(rows), p.counters(t))
	}
	// A queue that has never been, and a group that begins now.
	for _, args := range [][]string{{"work", "other", "--group", "g"}, {"work", "q", "--group", "late", "--from-now"}} {
		got := run(t, p.args(append(args, "--exit-when-empty", "--", "false")...)...)
		if got.code != 0 || strings.Contains(got.stderr, "WARN msg=\"message") {
			t.Errorf("%q: exit code %d, stderr %q", args, got.code, got.stderr)
		}
	}
}

func TestWorkNoServer(t *testing.T) {
	t.Parallel()
	got := run(t, "work", "q", "--group", "g", "--", "true")
	if got.code != 1 || got.stdout != "" || strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "127.0.0.1:1") {
		t.Errorf("exit code %d, stdout %q, stderr %q", got.code, got.stdout, got.stderr)
	}
	p, server := ownPlace(t, redistest.Options{})
	server.Pause()
	began := time.Now()
	got = run(t, p.args("work", "q", "--group", "g", "--timeout", "300ms", "--", "true")...)
	if took := time.Since(began); got.code != 1 || took > 5*time.Second || !strings.Contains(got.stderr, "--timeout") {
		t.Errorf("exit code %d after %s, stderr %q", got.code, took, got.stderr)
	}
	server.Resume()
}

func TestWorkUsage(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"QUEUE is missing":                       {},
		"QUEUE is missing;":                      {"--group", "g", "--", "true"},
		"the command is missing":                 {"q", "--group", "g"},
		"the command is missing;":                {"q", "--group", "g", "--"},
		"the command is missing; it comes last":  {"q", "true", "--group", "g"},
		"there is more than QUEUE before --":     {"q", "g", "--", "true"},
		"--group is missing":                     {"q", "--", "true"},
		"--concurrency must be above 0":          {"q", "-g", "g", "-c", "0", "--", "true"},
		"--max must be above 0":                  {"q", "-g", "g", "--max", "0", "--", "true"},
		"--prefetch is negative":                 {"q", "-g", "g", "--prefetch=-1", "--", "true"},
		"--retries and --lost-leases are -1":     {"q", "-g", "g", "--retries=-2", "--", "true"},
		"--drain-timeout and --kill-after":       {"q", "-g", "g", "--drain-timeout=-1s", "--", "true"},
		"--max-extension is 0":                   {"q", "-g", "g", "--max-extension", "0", "--", "true"},
		`invalid argument "0" for "--visibility`: {"q", "-g", "g", "--visibility-timeout", "0", "--", "true"},
		`invalid argument "-5s" for "--backoff"`: {"q", "-g", "g", "--backoff=-5s", "--", "true"},
	} {
		got := run(t, append([]string{"work"}, args...)...)
		if got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want 2 and %q", args, got.code, got.stdout, got.stderr, want)
		}
	}
	p := sharedPlace(t)
	for want, args := range map[string][]string{
		"at least 100ms": {"work", "q", "--group", "g", "--visibility-timeout", "10ms", "--", "true"},
		`"g{"`:           {"work", "q", "--group", "g{", "--", "true"},
		`"q}"`:           {"work", "q}", "--group", "g", "--", "true"},
		`"a b"`:          {"work", "q", "--group", "g", "--consumer-name", "a b", "--", "true"},
	} {
		if got := run(t, p.args(args...)...); got.code != 2 || !strings.Contains(got.stderr, want) || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, stderr %q", args, got.code, got.stderr)
		}
	}
}
