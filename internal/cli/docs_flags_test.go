package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	docCode    = regexp.MustCompile("`[^`\n]+`")
	docFlag    = regexp.MustCompile(`(?:^|[\s"'(\[])--([a-z][a-z-]*)`)
	docOthers  = regexp.MustCompile(` -- .*`) // the command line of another program
	docProgram = regexp.MustCompile(`\bxstreamq ([^|;&<>]*)`)
)

// eachCommand calls visit for a command and all below it.
func eachCommand(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		eachCommand(sub, visit)
	}
}

func hasFlag(cmd *cobra.Command, name string) bool {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	return cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil
}

// unknownFlags are those that a text shows and that no command has, or not the one that is called there.
func unknownFlags(root *cobra.Command, text string) (unknown []string) {
	text = docOthers.ReplaceAllString(text, "")
	known := map[string]bool{}
	eachCommand(root, func(cmd *cobra.Command) {
		for _, match := range docFlag.FindAllStringSubmatch(text, -1) {
			known[match[1]] = known[match[1]] || hasFlag(cmd, match[1])
		}
	})
	for name, ok := range known {
		if !ok {
			unknown = append(unknown, "--"+name)
		}
	}
	for _, call := range docProgram.FindAllStringSubmatch(text, -1) {
		cmd, _, err := root.Find(strings.Fields(call[1]))
		if err != nil {
			unknown = append(unknown, err.Error())
			continue
		}
		for _, match := range docFlag.FindAllStringSubmatch(" "+call[1], -1) {
			if known[match[1]] && !hasFlag(cmd, match[1]) {
				unknown = append(unknown, cmd.CommandPath()+" --"+match[1])
			}
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Flags exist that the documents show, in the text or in a command line, and of the commands that are called with them.
func TestDocumentedFlags(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&app{})
	shown := 0
	for _, document := range []string{"README.md", "CHANGELOG.md", "docs/operations.md", "docs/contract.md", "docs/message-path.md"} {
		text, err := os.ReadFile("../../" + document)
		if err != nil {
			t.Fatal(err)
		}
		var code []string
		for _, step := range docSteps(string(text)) {
			code = append(code, step.command)
		}
		for _, inline := range docCode.FindAllString(string(text), -1) {
			code = append(code, strings.Trim(inline, "`"))
		}
		for _, c := range code {
			shown += len(docFlag.FindAllString(c, -1))
			for _, flag := range unknownFlags(root, c) {
				t.Errorf("%s: %s: there is no %s", document, c, flag)
			}
		}
	}
	if shown < 30 {
		t.Errorf("only %d flags found", shown)
	}
}

// The same of what --help says.
func TestFlagsInHelp(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&app{})
	eachCommand(root, func(cmd *cobra.Command) {
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			for _, flag := range unknownFlags(root, line) {
				t.Errorf("%s --help: %s: there is no %s", cmd.CommandPath(), line, flag)
			}
		}
		prose := strings.ReplaceAll(cmd.Long, "xstreamq ", "") // sentences, not command lines
		for _, flag := range unknownFlags(root, prose+"\n"+cmd.Flags().FlagUsages()) {
			t.Errorf("%s --help: there is no %s", cmd.CommandPath(), flag)
		}
	})
}

func TestUnknownFlagsAreFound(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(&app{})
	for text, want := range map[string]string{
		"--error-regexp and --json":              "",
		"--error-match":                          "--error-match",
		"xstreamq dlq ls q g --error-regexp x":   "",
		"xstreamq dlq ls q g --canary 3":         "xstreamq dlq ls --canary",
		"xstreamq work q --group g -- x --odd":   "",
		"until xstreamq nosuch q; do true; done": `unknown command "nosuch" for "xstreamq"`,
	} {
		if got := strings.Join(unknownFlags(root, text), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
