// Package jsonpath finds a value in a JSON text by a path such as $.order.lines[0]["unit price"].
package jsonpath

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Path leads from the whole of a document to one value in it.
type Path struct{ steps []step }

// step goes into an object by name, or into an array by index.
type step struct {
	name  string
	index int // -1 = by name
}

// Parse reads a path: $, then any number of .name, ["name"] and [index]. The $, and the dot after it, may be left out. A name
// after a dot ends at the next dot or bracket; one in brackets is a JSON string. Indexes count from 0.
func Parse(text string) (Path, error) {
	var p Path
	rest, rooted := strings.CutPrefix(text, "$")
	if !rooted && rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	if text == "" {
		return p, badPath(text, 0, "it is empty; $ is the whole document")
	}
	for rest != "" {
		s, n, problem := nextStep(rest)
		if problem != "" {
			return Path{}, badPath(text, len(text)-len(rest), problem)
		}
		p.steps = append(p.steps, s)
		rest = rest[n:]
	}
	return p, nil
}

func badPath(text string, at int, problem string) error {
	return fmt.Errorf("JSON path %.200q, at character %d: %s", text, max(at, 0)+1, problem)
}

// nextStep reads one step and returns its length, or what is wrong with it.
func nextStep(s string) (st step, length int, problem string) {
	switch s[0] {
	case '.':
		name := s[1:]
		if end := strings.IndexAny(name, ".["); end >= 0 {
			name = name[:end]
		}
		if name == "" {
			return st, 0, "a name is missing after the dot"
		}
		return step{name: name, index: -1}, 1 + len(name), ""
	case '[':
		if strings.HasPrefix(s, `["`) {
			return quotedStep(s)
		}
		digits, _, closed := strings.Cut(s[1:], "]")
		index, err := strconv.ParseUint(digits, 10, 31)
		if !closed || err != nil {
			return st, 0, `want [index] or ["name"]`
		}
		return step{index: int(index)}, len(digits) + 2, ""
	}
	return st, 0, `want .name, ["name"] or [index]`
}

// quotedStep reads a step that begins with [".
func quotedStep(s string) (st step, length int, problem string) {
	end := 2
	for end < len(s) && s[end] != '"' {
		if s[end] == '\\' {
			end++
		}
		end++
	}
	if end+1 >= len(s) || s[end+1] != ']' {
		return st, 0, `["name"] does not end`
	}
	st.index = -1
	if err := json.Unmarshal([]byte(s[1:end+1]), &st.name); err != nil {
		return st, 0, "the name in brackets is no JSON string"
	}
	return st, end + 2, ""
}
