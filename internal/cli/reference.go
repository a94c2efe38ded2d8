package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

//go:generate go run ./gendocs ../../docs/cli

// referenceMark is at the top of every file of the reference.
const referenceMark = "<!-- Generated from the commands by go generate; do not edit. -->\n\n"

// WriteReference writes a Markdown file for each command into a folder, and removes those of commands that are no more. What it
// writes is made of --help alone, and the same on every machine.
func WriteReference(folder string) error {
	pages := map[string]string{}
	root, _ := newRoot(&app{})
	addPages(pages, root)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return fmt.Errorf("reference: %w", err)
	}
	for _, name := range old {
		if _, stays := pages[filepath.Base(name)]; !stays {
			if err := os.Remove(name); err != nil {
				return fmt.Errorf("reference: %w", err)
			}
		}
	}
	for name, text := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("reference: %w", err)
		}
	}
	return nil
}

// addPages adds the page of a command and those of the commands below it.
func addPages(pages map[string]string, cmd *cobra.Command) {
	pages[pageName(cmd)] = page(cmd)
	for _, sub := range documented(cmd) {
		addPages(pages, sub)
	}
}

// documented are the commands below one that have a page.
func documented(cmd *cobra.Command) []*cobra.Command {
	var subs []*cobra.Command
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			subs = append(subs, sub)
		}
	}
	return subs
}

func pageName(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
}

func page(cmd *cobra.Command) string {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	var b strings.Builder
	b.WriteString(referenceMark)
	fmt.Fprintf(&b, "# %s\n\n%s.\n", cmd.CommandPath(), strings.TrimSuffix(cmd.Short, "."))
	block := func(title, language, text string) {
		if text = strings.Trim(text, "\n"); text != "" {
			fmt.Fprintf(&b, "\n%s```%s\n%s\n```\n", title, language, text)
		}
	}
	if cmd.Runnable() && !cmd.HasSubCommands() {
		block("", "text", cmd.UseLine())
	}
	block("", "text", trimLines(cmd.Long, ""))
	if subs := documented(cmd); len(subs) > 0 {
		b.WriteString("\n## Commands\n\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, "- [%s](%s): %s\n", sub.CommandPath(), pageName(sub), sub.Short)
		}
	}
	block("## Examples\n\n", "sh", trimLines(cmd.Example, "  "))
	block("## Flags\n\n", "text", cmd.NonInheritedFlags().FlagUsagesWrapped(helpWidth))
	if cmd.HasParent() {
		root := cmd.Root()
		fmt.Fprintf(&b, "\nAlso the [flags of every command](%s#flags). Part of [%s](%s).\n",
			pageName(root), cmd.Parent().CommandPath(), pageName(cmd.Parent()))
	}
	return b.String()
}

// trimLines takes an indent off the lines, and the spaces off their ends.
func trimLines(text, indent string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(line, indent), " \t")
	}
	return strings.Join(lines, "\n")
}
