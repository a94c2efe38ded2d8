package luagen

import (
	"regexp"
	"strconv"
	"strings"
)

// param is one declared key or argument.
type param struct {
	at   position
	name string
	typ  string // of an argument; empty for a key
	tail bool   // takes all remaining arguments
	doc  string
}

// result is one RETURNS line. Free text has an empty name.
type result struct {
	at   position
	code int64
	name string
	doc  string
}

// include is one INCLUDE line.
type include struct {
	at   position
	name string
}

// header is what the comment block at the top of a file declares.
type header struct {
	purpose    string   // of the first line, with its full stop
	text       []string // the prose below it
	keys       []param
	argv       []param
	returns    []result
	includes   []include
	idempotent bool
}

const (
	firstLineRule = `the first line must be "-- %s: purpose." (the file's own name, a sentence, a full stop)`
	keysRule      = `want "KEYS n Name doc", where Name is a field of the keys struct`
	argvRule      = `want "ARGV n name type doc", with type string, bytes, int or bool, or at the end "ARGV n... name strings doc"`
	returnsRule   = `want "RETURNS code Name doc" with an integer code, or "RETURNS - text"`
	includeRule   = `want "INCLUDE name"`
)

var (
	namePattern     = regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`)
	exportedPattern = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	keysPattern     = regexp.MustCompile(`^KEYS (\d+) +(\S+) +(\S.*)$`)
	argvPattern     = regexp.MustCompile(`^ARGV (\d+)(\.\.\.)? +(\S+) +(\S+) +(\S.*)$`)
	returnsPattern  = regexp.MustCompile(`^RETURNS (-?\d+) +(\S+) +(\S.*)$`)
	freePattern     = regexp.MustCompile(`^RETURNS - +(\S.*)$`)
	includePattern  = regexp.MustCompile(`^INCLUDE (\S+)$`)
	wordPattern     = regexp.MustCompile(`^(KEYS|ARGV|RETURNS|INCLUDE|IDEMPOTENT)\b`)
	// strayPattern finds declarations that a blank line cut off from the header.
	strayPattern = regexp.MustCompile(`^(KEYS \d|ARGV \d|RETURNS (-|-?\d)|INCLUDE \S+$|IDEMPOTENT$)`)
)

// headerParser reads the comment block line by line.
type headerParser struct {
	header
	found *problems
	doc   *string // doc of the last declaration, for a line that continues it
}

// parseHeader reads the header of the file called name, and returns the number
// of lines it takes. lines holds at least one.
func parseHeader(file, name string, lines []string, found *problems) (header, int) {
	p := &headerParser{found: found}
	purpose, ok := strings.CutPrefix(lines[0], "-- "+name+": ")
	if !ok || !strings.HasSuffix(purpose, ".") {
		found.add(position{file, 1}, firstLineRule, name)
	}
	if !strings.HasPrefix(lines[0], "--") {
		return p.header, 0
	}
	p.purpose = purpose
	n := 1
	for ; n < len(lines); n++ {
		text, ok := strings.CutPrefix(lines[n], "--")
		if !ok {
			break
		}
		at := position{file, n + 1}
		if longBracket.MatchString(text) {
			found.add(at, noLongComment)
			continue
		}
		p.line(at, text)
	}
	p.text = trimEmpty(p.text)
	return p.header, n
}

// line reads one line of the header, without its dashes.
func (p *headerParser) line(at position, text string) {
	trimmed := strings.TrimSpace(text)
	switch word := wordPattern.FindString(trimmed); {
	case word != "":
		p.doc = new(string)
		p.declaration(at, word, trimmed)
	case p.doc == nil:
		p.text = append(p.text, strings.TrimPrefix(text, " "))
	case trimmed == "":
	case strings.HasPrefix(text, "  "):
		*p.doc += " " + trimmed
	default:
		p.found.add(at, "prose belongs above the declarations; indent the line by two spaces to continue the one before it")
	}
}

func (p *headerParser) declaration(at position, word, text string) {
	switch word {
	case "KEYS":
		p.key(at, text)
	case "ARGV":
		p.arg(at, text)
	case "RETURNS":
		p.result(at, text)
	case "INCLUDE":
		m := includePattern.FindStringSubmatch(text)
		if m == nil {
			p.found.add(at, includeRule)
			return
		}
		for _, inc := range p.includes {
			if inc.name == m[1] {
				p.found.add(at, "%s is included already in line %d", m[1], inc.at.line)
			}
		}
		p.includes = append(p.includes, include{at, m[1]})
	case "IDEMPOTENT":
		if text != word {
			p.found.add(at, "IDEMPOTENT stands alone on its line")
		}
		p.idempotent = true
	}
}

func (p *headerParser) key(at position, text string) {
	m := keysPattern.FindStringSubmatch(text)
	if m == nil || !exportedPattern.MatchString(m[2]) {
		p.found.add(at, keysRule)
		return
	}
	if n := len(p.keys) + 1; m[1] != strconv.Itoa(n) {
		p.found.add(at, "KEYS %s is out of order, want KEYS %d", m[1], n)
	}
	for _, k := range p.keys {
		if k.name == m[2] {
			p.found.add(at, "key %s is declared already in line %d", m[2], k.at.line)
		}
	}
	p.keys = append(p.keys, param{at: at, name: m[2], doc: m[3]})
	p.doc = &p.keys[len(p.keys)-1].doc
}

func (p *headerParser) arg(at position, text string) {
	m := argvPattern.FindStringSubmatch(text)
	if m == nil {
		p.found.add(at, argvRule)
		return
	}
	arg := param{at: at, name: m[3], typ: m[4], tail: m[2] != "", doc: m[5]}
	_, known := argTypes[arg.typ]
	if !namePattern.MatchString(arg.name) || !known || arg.tail != (arg.typ == "strings") {
		p.found.add(at, argvRule)
		return
	}
	if n := len(p.argv) + 1; m[1] != strconv.Itoa(n) {
		p.found.add(at, "ARGV %s is out of order, want ARGV %d", m[1], n)
	}
	for _, a := range p.argv {
		if fieldName(a.name) == fieldName(arg.name) {
			p.found.add(at, "argument %s is declared already in line %d", arg.name, a.at.line)
		}
		if a.tail {
			p.found.add(at, "ARGV after the one that takes all the rest (line %d)", a.at.line)
		}
	}
	p.argv = append(p.argv, arg)
	p.doc = &p.argv[len(p.argv)-1].doc
}

func (p *headerParser) result(at position, text string) {
	if m := freePattern.FindStringSubmatch(text); m != nil {
		p.returns = append(p.returns, result{at: at, doc: m[1]})
		p.doc = &p.returns[len(p.returns)-1].doc
		return
	}
	m := returnsPattern.FindStringSubmatch(text)
	if m == nil || !exportedPattern.MatchString(m[2]) {
		p.found.add(at, returnsRule)
		return
	}
	code, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		p.found.add(at, returnsRule)
		return
	}
	for _, r := range p.returns {
		if r.name != "" && (r.code == code || r.name == m[2]) {
			p.found.add(at, "result %s %s is declared already in line %d", m[1], m[2], r.at.line)
		}
	}
	p.returns = append(p.returns, result{at, code, m[2], m[3]})
	p.doc = &p.returns[len(p.returns)-1].doc
}

// tail returns the index of the argument that takes the rest, 0 if there is none.
func (h *header) tail() int {
	if n := len(h.argv); n > 0 && h.argv[n-1].tail {
		return n
	}
	return 0
}

// trimEmpty drops empty lines at both ends.
func trimEmpty(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
