package luagen

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

var initialisms = map[string]string{"id": "ID", "ids": "IDs", "url": "URL", "urls": "URLs", "ttl": "TTL"}

// fieldName turns the lowerCamel name of an argument into that of a field: its
// first letter is made big, and words such as Id follow the Go spelling.
func fieldName(name string) string {
	var b strings.Builder
	for _, word := range splitCamel(name) {
		if s, ok := initialisms[strings.ToLower(word)]; ok {
			word = s
		}
		b.WriteString(upperFirst(word))
	}
	return b.String()
}

// splitCamel splits before each big letter.
func splitCamel(name string) []string {
	var words []string
	start := 0
	for i, r := range name {
		if unicode.IsUpper(r) && i > start {
			words = append(words, name[start:i])
			start = i
		}
	}
	return append(words, name[start:])
}

func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// sentence makes a phrase of a header a sentence.
func sentence(s string) string {
	s = upperFirst(s)
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// runName is the name of the Go function that runs a script.
func runName(script string) string { return "run" + upperFirst(script) }

// checkNames reports identifiers that the generated file would declare twice.
func checkNames(scripts []*script, found *problems) {
	seen := map[string]position{}
	claim := func(at position, name string) {
		if first, ok := seen[name]; ok {
			found.add(at, "Go name %s is taken already by %s", name, first)
			return
		}
		seen[name] = at
	}
	for _, s := range scripts {
		at := position{s.file, 1}
		claim(at, runName(s.name))
		for _, suffix := range []string{"SHA", "Source", "Script", "Args"} {
			claim(at, s.name+suffix)
		}
	}
	for _, s := range scripts {
		for _, r := range s.header.returns {
			if r.name != "" {
				claim(r.at, s.name+r.name)
			}
		}
	}
}
