package repolint

import (
	"strings"
	"testing"
)

// forbidden lists text that has no place in a repository that others read: paths
// of one person's machine, and markers of unfinished work. The entries are put
// together here so that this file does not hold them.
func forbidden() []string {
	return []string{
		"/" + "root/",
		"/" + "home/",
		"TO" + "DO",
		"FIX" + "ME",
		"XX" + "X:",
	}
}

func TestNoForbiddenText(t *testing.T) {
	t.Parallel()
	for _, file := range files(t) {
		text := read(t, file)
		if strings.ContainsRune(text, 0) {
			continue // not text
		}
		number := 0
		for line := range strings.Lines(text) {
			number++
			for _, word := range forbidden() {
				if containsFolded(line, word) {
					t.Errorf("%s:%d: remove %q", file, number, word)
				}
			}
		}
	}
}

// containsFolded ignores case, except for words that are all capitals: those are
// markers, and the same letters in lower case are ordinary words.
func containsFolded(line, word string) bool {
	if word == strings.ToUpper(word) && word != strings.ToLower(word) {
		return strings.Contains(line, word)
	}
	return strings.Contains(strings.ToLower(line), word)
}
