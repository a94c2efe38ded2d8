package cli

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// What differs from run to run in the answers of RSMQ.
var (
	rsmqIDPattern = regexp.MustCompile(`\b[0-9a-z]{10}[0-9A-Za-z]{22}\b`)
	rsmqVolatile  = regexp.MustCompile(`"(fr|sent|created|modified|hiddenmsgs|rsmq-sent)":"?[0-9.]+"?`)
)

// The commands and requests that docs/rsmq-service.md shows are answered so.
func TestRSMQDocumentedTranscript(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("SKIPPED, the requests of docs/rsmq-service.md are not tested:", err)
	}
	text, err := os.ReadFile("../../docs/rsmq-service.md")
	if err != nil {
		t.Fatal(err)
	}
	steps := docSteps(string(text))
	if len(steps) < 20 {
		t.Fatalf("%d steps", len(steps))
	}
	shell := newDocShell(t)
	url := ""
	for _, v := range shell.env { // the last one counts
		if after, ok := strings.CutPrefix(v, urlVariable+"="); ok {
			url = after
		}
	}
	service := serveRSMQ(t, url, "--ns", "rsmq")
	shell.env = append(shell.env, rsmqURLVariable+"=", "no_proxy=*") // what this machine's environment says is not for this test
	ids := map[string]string{}                                       // of the document, and what they are here
	for _, step := range steps {
		step.command = strings.ReplaceAll(step.command, "http://127.0.0.1:8101", service.url)
		step.command = rsmqIDPattern.ReplaceAllStringFunc(step.command, func(id string) string { return ids[id] })
		if step.hidden {
			shell.play(step)
			continue
		}
		got := shell.onTerminal(step.command)
		plain := func(text string) string {
			return rsmqIDPattern.ReplaceAllString(rsmqVolatile.ReplaceAllString(text, `"$1":N`), "ID")
		}
		if diff := cmp.Diff(plain(step.answer), plain(got)); diff != "" {
			t.Fatalf("line %d: %s (-text +answer):\n%s", step.line, step.command, diff)
		}
		here := rsmqIDPattern.FindAllString(got, -1)
		for i, written := range rsmqIDPattern.FindAllString(step.answer, -1) {
			if known, ok := ids[written]; ok && known != here[i] {
				t.Errorf("line %d: %s stood for %s before, and now for %s", step.line, written, known, here[i])
			}
			ids[written] = here[i]
		}
	}
}

// docs/rsmq-service.md lists every command of rsmq, and its alias.
func TestRSMQDocumentedCommands(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&app{})
	group, _, err := root.Find([]string{"rsmq"})
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]string{}
	for _, cmd := range group.Commands() {
		if name := cmd.Name(); name != "serve" && name != "migrate" { // which have sections of their own
			commands[name] = strings.Join(cmd.Aliases, ", ")
		}
	}
	text, err := os.ReadFile("../../docs/rsmq-service.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)`(?: \\(new\\))? \\| (?:`([a-z]+)`)? ?\\|").FindAllStringSubmatch(string(text), -1) {
		listed[row[1]] = row[2]
	}
	if diff := cmp.Diff(commands, listed); diff != "" {
		t.Errorf("commands (-code +document):\n%s", diff)
	}
}

// Command lines that the document mentions in passing have commands, arguments and flags that exist.
func TestRSMQDocumentedCommandLines(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/rsmq-service.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile("`xstreamq (rsmq [^`]+)`").FindAllStringSubmatch(string(text), -1)
	for _, line := range lines {
		root, _ := newRoot(&app{})
		var cmd *cobra.Command
		cmd, args, err := root.Find(strings.Fields(line[1]))
		if err == nil {
			err = cmd.ParseFlags(args)
		}
		if err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
		if err != nil || !cmd.Runnable() {
			t.Errorf("xstreamq %s: %v", line[1], err)
		}
	}
	if len(lines) < 4 {
		t.Errorf("only %d command lines found", len(lines))
	}
}
