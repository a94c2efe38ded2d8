package repolint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	fence      = regexp.MustCompile("^\\s*(```+|~~~+)\\s*([A-Za-z]*)")
	codeSpan   = regexp.MustCompile("`[^`]*`")
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	htmlAnchor = regexp.MustCompile(`<a\s+(?:id|name)="([^"]+)"`)
	// The target of an inline link or image, of a reference definition, of HTML.
	targets = []*regexp.Regexp{
		regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`),
		regexp.MustCompile(`^\s{0,3}\[[^\]]+\]:\s*<?([^\s>]+)`),
		regexp.MustCompile(`(?:src|href)="([^"]+)"`),
	}
	linkInHeading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	scheme        = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
	notInSlug     = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// A docLine is one line of a Markdown file; language is that of the fenced block
// it stands in, "text" for a block without one, and empty outside blocks.
type docLine struct {
	number   int
	text     string
	language string
}

func docLines(text string) []docLine {
	var lines []docLine
	open, language := "", ""
	for i, line := range strings.Split(text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case match != nil && open == "":
			open, language = match[1], strings.ToLower(match[2])
			if language == "" {
				language = "text"
			}
		case match != nil && strings.HasPrefix(match[1], open):
			open, language = "", ""
		default:
			lines = append(lines, docLine{i + 1, line, language})
		}
	}
	return lines
}

// anchors returns the fragments that a Markdown file offers, as GitHub makes them.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, line := range docLines(text) {
		if line.language != "" {
			continue
		}
		for _, match := range htmlAnchor.FindAllStringSubmatch(line.text, -1) {
			found[match[1]] = true
		}
		match := heading.FindStringSubmatch(line.text)
		if match == nil {
			continue
		}
		title := strings.ToLower(linkInHeading.ReplaceAllString(match[1], "$1"))
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(title, ""), " ", "-")
		unique := slug
		for n := 1; found[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", slug, n)
		}
		found[unique] = true
	}
	return found
}

// linkProblem says what is wrong with a link in a file, or nothing.
func linkProblem(file, target string, exists map[string]bool, readFile func(string) string) string {
	if scheme.MatchString(target) {
		return ""
	}
	target, fragment, _ := strings.Cut(target, "#")
	if strings.HasPrefix(target, "/") {
		return "is absolute: write it relative to the file"
	}
	linked := file
	if target != "" {
		linked = path.Join(path.Dir(file), target)
	}
	if !exists[linked] {
		return "leads nowhere: there is no " + linked
	}
	if fragment != "" && strings.HasSuffix(linked, ".md") && !anchors(readFile(linked))[fragment] {
		return linked + " has no heading #" + fragment
	}
	return ""
}

func TestRelativeLinksResolve(t *testing.T) {
	t.Parallel()
	exists := map[string]bool{".": true}
	for _, file := range files(t) {
		for ; file != "."; file = path.Dir(file) {
			exists[file] = true
		}
	}
	checked := 0
	for _, file := range filesNamed(t, ".md") {
		for _, line := range docLines(read(t, file)) {
			if line.language != "" {
				continue
			}
			text := codeSpan.ReplaceAllString(line.text, "``")
			for _, pattern := range targets {
				for _, match := range pattern.FindAllStringSubmatch(text, -1) {
					checked++
					problem := linkProblem(file, match[1], exists, func(name string) string { return read(t, name) })
					if problem != "" {
						t.Errorf("%s:%d: link %s: %s", file, line.number, match[1], problem)
					}
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no link found in any Markdown file: this test proves nothing")
	}
}

func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^([a-z][a-z/-]*):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		known["make "+match[1]] = true
	}
	for _, file := range productionFiles(t) {
		if file.syntax.Name.Name == "main" {
			known["go run ./"+path.Dir(file.name)] = true
		}
	}
	checked := 0
	for _, file := range filesNamed(t, ".md") {
		for _, line := range docLines(read(t, file)) {
			switch line.language {
			case "text", "sh", "shell", "bash", "console":
			default:
				continue
			}
			for _, command := range documentedCommands(line.text) {
				checked++
				if !known[command] {
					t.Errorf("%s:%d: there is no `%s`", file, line.number, command)
				}
			}
		}
	}
	if checked == 0 {
		t.Error("no command found in any Markdown file: this test proves nothing")
	}
}

// documentedCommands returns "go run ./folder" or one "make target" per target of
// a command line, and nothing for other commands.
func documentedCommands(line string) []string {
	line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "$ "), " #")
	words := strings.Fields(line)
	switch {
	case len(words) > 2 && words[0] == "go" && words[1] == "run" && strings.HasPrefix(words[2], "./"):
		return []string{"go run " + strings.TrimSuffix(words[2], "/")}
	case len(words) > 1 && words[0] == "make":
		var commands []string
		for _, word := range words[1:] {
			if strings.ContainsAny(word, "&|;<>") {
				break
			}
			if !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
				commands = append(commands, "make "+word)
			}
		}
		return commands
	}
	return nil
}
