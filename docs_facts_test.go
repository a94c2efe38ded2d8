package xstreamq_test

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// The promises are numbered alike in doc.go and in the README, and each one has a test that names it.
func TestPromisesAreNamed(t *testing.T) {
	t.Parallel()
	tests := allTests(t)
	doc, readme := readDoc(t, "doc.go"), readDoc(t, "README.md")
	for _, p := range []string{"P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "P9"} {
		if !strings.Contains(doc, "// "+p+". ") || !strings.Contains(readme, "- **"+p+"** ") {
			t.Errorf("%s is missing from doc.go or README.md", p)
		}
		if !regexp.MustCompile(`(?m)^// .*\b` + p + `\b`).MatchString(tests) {
			t.Errorf("no test names %s", p)
		}
	}
}

// allTests returns the text of this package's tests, without the ones of the documents.
func allTests(t *testing.T) string {
	t.Helper()
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		if !strings.HasPrefix(name, "docs_") {
			all.WriteString(readDoc(t, name))
		}
	}
	return all.String()
}

// Tests and files that message-path.md names exist.
func TestMessagePathNames(t *testing.T) {
	t.Parallel()
	tests, text := allTests(t), readDoc(t, "docs/message-path.md")
	named := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*)`").FindAllStringSubmatch(text, -1)
	if len(named) == 0 {
		t.Error("message-path.md names no test")
	}
	for _, match := range named {
		if !strings.Contains(tests, "\nfunc "+match[1]+"(") {
			t.Errorf("there is no test %s", match[1])
		}
	}
	for _, match := range regexp.MustCompile("`([a-z_/]+\\.(?:go|lua))`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(match[1]); err != nil {
			t.Error(err)
		}
	}
}

// operations.md lists every line that the package logs, and no other.
func TestDocumentedLogLines(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`(?:log|Logger)\.(Warn|Error)\((loop\+)?"([^"]+)"`)
	logged := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, match := range call.FindAllStringSubmatch(readDoc(t, name), -1) {
			line := match[3]
			if match[2] != "" {
				line = "LOOP" + line
			}
			logged[line] = strings.ToLower(match[1])
		}
	}
	listed := map[string]string{}
	text := readDoc(t, "docs/operations.md")
	levels := docColumn(t, text, "line", 1)
	for i, line := range docColumn(t, text, "line", 0) {
		listed[line] = levels[i]
	}
	if diff := cmp.Diff(logged, listed); diff != "" {
		t.Errorf("log lines (-code +docs/operations.md):\n%s", diff)
	}
}

// contract.md names the keys, fields and reasons that the code uses.
func TestDocumentedContractNames(t *testing.T) {
	t.Parallel()
	text := readDoc(t, "docs/contract.md")
	k := keys.ForGroup("p", "Q", "G")
	wantKeys := []string{k.Queue, k.Retry, k.DLQ, k.Delayed, k.Backoff, k.Done, k.Lock, k.OnRetry("G").Lock, keys.Migrated("p", "Q"), k.Registry}
	if diff := cmp.Diff(wantKeys, docColumn(t, text, "key", 0)); diff != "" {
		t.Errorf("keys (-code +docs):\n%s", diff)
	}
	if group := keys.RetryGroup("G"); !strings.Contains(text, "its consumer group is `"+group+"`") {
		t.Errorf("the consumer group %s is not named", group)
	}
	wantFields := []string{
		wire.Body, wire.Header + "NAME", wire.Original, wire.Publish, wire.Failures, wire.Lost, wire.Error,
		wire.Reason, wire.At, wire.From, wire.By, wire.Packed,
	}
	if diff := cmp.Diff(wantFields, docColumn(t, text, "field", 0)); diff != "" {
		t.Errorf("fields (-code +docs):\n%s", diff)
	}
	wantReasons := []string{
		string(xstreamq.Failed), string(xstreamq.LostLease), string(xstreamq.Rejected),
		string(xstreamq.Undecodable), string(xstreamq.NoBody), string(xstreamq.BodyLost),
	}
	if diff := cmp.Diff(wantReasons, docColumn(t, text, "reason", 0)); diff != "" {
		t.Errorf("reasons (-code +docs):\n%s", diff)
	}
	for _, block := range docBlocks(text) {
		if block.language != "text" {
			continue
		}
		fields, err := wire.Unpack(strings.TrimSuffix(block.text, "\n"))
		want := []string{"body", `{"id":1}`, "h:tenant", "acme"}
		if diff := cmp.Diff(want, fields); err != nil || diff != "" {
			t.Errorf("the packed entry of line %d: %v %s", block.line, err, diff)
		}
	}
}

// operations.md shows the permissions that the tests of a minimal ACL run with.
func TestDocumentedPermissions(t *testing.T) {
	t.Parallel()
	text := readDoc(t, "docs/operations.md")
	tasks := map[string]string{}
	commands := docColumn(t, text, "task", 1)
	for i, task := range docColumn(t, text, "task", 0) {
		tasks[task] = commands[i]
	}
	if diff := cmp.Diff(aclTasks, tasks); diff != "" {
		t.Errorf("permissions for tasks (-tested +docs/operations.md):\n%s", diff)
	}
	operator := aclOperatorKeys + " " + aclLooker
	for _, commands := range aclTasks {
		operator += " " + commands
	}
	want := map[string]string{
		"publisher": aclPublisherKeys + " " + aclPublisher,
		"worker":    aclWorkerKeys + " " + aclWorker,
		"looker":    aclOperatorKeys + " " + aclLooker,
		"operator":  operator,
	}
	shown := map[string]string{}
	for _, block := range docBlocks(text) {
		if block.language != "acl" {
			continue
		}
		for line := range strings.Lines(block.text) {
			words := strings.Fields(line)
			if len(words) < 5 || !slices.Equal([]string{"user", "on", ">secret"}, []string{words[0], words[2], words[3]}) {
				t.Fatalf("docs/operations.md:%d: %s", block.line, line)
			}
			shown[words[1]] = sortedWords(strings.Join(words[4:], " "))
		}
	}
	for user, rules := range want {
		want[user] = sortedWords(strings.NewReplacer("{q}", "{orders}", "~app:", "~").Replace(rules))
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("permissions (-tested +docs/operations.md):\n%s", diff)
	}
}

// sortedWords are the words of a text, each once.
func sortedWords(s string) string {
	return strings.Join(slices.Compact(slices.Sorted(strings.FieldsSeq(s))), "\n")
}

// The README names every module that go.mod requires directly, and no other.
func TestDocumentedModules(t *testing.T) {
	t.Parallel()
	var required []string
	for line := range strings.Lines(readDoc(t, "go.mod")) {
		words := strings.Fields(line)
		if len(words) == 2 && strings.HasPrefix(words[1], "v") {
			required = append(required, words[0])
		}
	}
	var named []string
	for _, cell := range docColumn(t, readDoc(t, "README.md"), "part", 1) {
		for _, match := range regexp.MustCompile("`?([a-z.]+/[A-Za-z0-9/-]+)").FindAllStringSubmatch(cell, -1) {
			named = append(named, match[1])
		}
	}
	slices.Sort(named)
	named = slices.Compact(named)
	if diff := cmp.Diff(required, named); diff != "" {
		t.Errorf("modules (-go.mod +README):\n%s", diff)
	}
}

// The README lists what can be done on a client besides running it, in the order in which a reader meets it.
func TestDocumentedOperations(t *testing.T) {
	t.Parallel()
	running := []string{"Start", "Run", "Stop", "Close", "Health", "Healthy", "HealthHandler"}
	var methods []string
	client := reflect.TypeFor[*xstreamq.Client]()
	for i := range client.NumMethod() {
		if name := client.Method(i).Name; !slices.Contains(running, name) {
			methods = append(methods, name)
		}
	}
	listed := docColumn(t, readDoc(t, "README.md"), "on a `Client`", 0)
	slices.Sort(listed)
	if diff := cmp.Diff(methods, listed); diff != "" {
		t.Errorf("methods of Client (-code +README):\n%s", diff)
	}
}
