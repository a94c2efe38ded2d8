package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

// maxTime is the promise of the command.
const maxTime = 15 * time.Second

type group struct {
	Group     string         `json:"group"`
	Published int            `json:"published"`
	Handled   int            `json:"handled"`
	Retried   int            `json:"retried"`
	Recovered int            `json:"recovered"`
	Dead      map[string]int `json:"dead"`
	Released  int            `json:"released"`
}

type result struct {
	Payloads  int      `json:"payloads"`
	Accounted bool     `json:"accounted"`
	Seconds   float64  `json:"seconds"`
	Groups    []group  `json:"groups"`
	Problems  []string `json:"problems"`
}

// parse reads the one JSON object that a text must be.
func parse(t *testing.T, text string) result {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	var r result
	if err := decoder.Decode(&r); err != nil {
		t.Fatalf("stdout is not the JSON object: %v\n%s", err, text)
	}
	if err := decoder.Decode(new(any)); err != io.EOF {
		t.Fatalf("stdout holds more than one JSON object:\n%s", text)
	}
	return r
}

// check compares a result with what the payloads and the handlers of the demonstration come to.
func check(t *testing.T, r result) {
	t.Helper()
	for i := range r.Groups {
		g := &r.Groups[i]
		// A worker dies with one message in its handler and three read ahead; on a slow machine more leases may run out.
		if g.Recovered < 4 {
			t.Errorf("group %s: recovered %d messages from lost leases, want at least 4", g.Group, g.Recovered)
		}
		if g.Released == 0 {
			t.Errorf("group %s: the drained worker released nothing", g.Group)
		}
		g.Recovered, g.Released = 0, 0
	}
	if r.Seconds <= 0 || r.Seconds > maxTime.Seconds() {
		t.Errorf("it took %v s, want at most %s", r.Seconds, maxTime)
	}
	r.Seconds = 0
	want := result{Payloads: 329, Accounted: true, Groups: []group{
		// 13 events fail twice, 2 fail for ever; 9 and 4 in the other group.
		{Group: "indexer", Published: 331, Handled: 328, Retried: 13*2 + 2*3, Dead: map[string]int{"failed": 2, "undecodable": 1}},
		{Group: "notifier", Published: 331, Handled: 326, Retried: 9*2 + 4*3, Dead: map[string]int{"failed": 4, "undecodable": 1}},
	}}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestDemoOnEmbeddedServer(t *testing.T) {
	t.Parallel()
	got := run(t, "demo", "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	check(t, parse(t, got.stdout))
	plainLines(t, got.stderr)
}

func TestDemoOnRedis(t *testing.T) {
	t.Parallel()
	url := redistest.URL(t)
	got := run(t, "demo", "--json", "--url", url)
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	check(t, parse(t, got.stdout))
	plainLines(t, got.stderr)
	noKeys(t, got.stderr)
}

// plainLines checks that what went to a pipe moves no cursor, and shows the progress.
func plainLines(t *testing.T, stderr string) {
	t.Helper()
	if strings.ContainsAny(stderr, "\r\x1b") {
		t.Errorf("the output to a pipe moves the cursor: %q", stderr)
	}
	if !strings.Contains(stderr, "662 of 662 done\n") {
		t.Errorf("no progress on stderr: %q", stderr)
	}
}

var removed = regexp.MustCompile(`removed all keys under "(xstreamq-demo-[a-z0-9]+:)"`)

// noKeys checks that nothing is left under the prefix that the command worked under.
func noKeys(t *testing.T, stderr string) {
	t.Helper()
	match := removed.FindStringSubmatch(stderr)
	if match == nil {
		t.Fatalf("stderr does not say which keys were removed:\n%s", stderr)
	}
	client := redistest.Client(t)
	for cursor, more := uint64(0), true; more; {
		page, err := scan(t, client, cursor, match[1]+"*")
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Elements) > 0 {
			t.Errorf("keys are left: %q", page.Elements)
		}
		cursor, more = page.Cursor, page.Cursor != 0
	}
}

func scan(t *testing.T, client rueidis.Client, cursor uint64, match string) (rueidis.ScanEntry, error) {
	t.Helper()
	return client.Do(t.Context(), client.B().Scan().Cursor(cursor).Match(match).Count(1000).Build()).AsScanEntry()
}

func TestDemoServerOutOfReach(t *testing.T) {
	t.Parallel()
	for url, code := range map[string]int{
		"redis://user:s3cret@127.0.0.1:1":              1,
		"redis://user:s3cret@%zz":                      2,
		"http://user:s3cret@127.0.0.1:1":               2,
		"redis://user:s3cret@127.0.0.1:1/not-a-number": 2,
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			got := run(t, "demo", "--json", "--url", url)
			if got.code != code || got.stdout != "" || !strings.HasPrefix(got.stderr, "error: ") {
				t.Errorf("exit code %d, stdout %q, stderr %q; want %d, nothing, an error", got.code, got.stdout, got.stderr, code)
			}
			if strings.Contains(got.stderr, "s3cret") {
				t.Errorf("the password is shown: %q", got.stderr)
			}
		})
	}
}

// TestDemoServerVanishes checks that a server which goes away in the middle ends the demonstration with an error.
func TestDemoServerVanishes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	cmd := command(t, "demo", "--json", "--url", server.URL())
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	output, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var stderr strings.Builder
	for lines := bufio.NewScanner(output); lines.Scan(); {
		stderr.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "killed worker-4") {
			server.Kill()
		}
	}
	code := exitCode(t, cmd.Wait())
	if code != 1 || stdout.Len() > 0 || !strings.Contains(stderr.String(), "\nremove the keys under ") {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", code, stdout.String(), stderr.String())
	}
}

// TestDemoTimeout checks that --timeout ends the demonstration in order.
func TestDemoTimeout(t *testing.T) {
	t.Parallel()
	name := file(t, redistest.URL(t))
	got := run(t, "demo", "--json", "--url-file", name, "--timeout", "1s")
	lines := strings.SplitAfter(got.stderr, "\n")
	if last := lines[max(0, len(lines)-2)]; got.code != 1 || got.stdout != "" || notOneLine(last) != "" || !strings.Contains(last, "--timeout") {
		t.Errorf("exit code %d, stdout %q, stderr:\n%s", got.code, got.stdout, got.stderr)
	}
	noKeys(t, got.stderr)
}
