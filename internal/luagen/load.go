package luagen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"
)

// source is one file, parsed.
type source struct {
	file   string // path, as errors show it
	name   string // base name without .lua
	header header
	code   []codeLine
	chunk  []ast.Stmt
}

// script is a source with its includes put before it.
type script struct {
	source
	includes []*source // in the order they are emitted
}

// code returns the lines of the script, includes first.
func (s *script) lines() []codeLine {
	var all []codeLine
	for _, inc := range s.includes {
		all = append(all, inc.code...)
	}
	return append(all, s.source.code...)
}

// text is what is sent to the server.
func (s *script) text() string {
	var b strings.Builder
	for _, l := range s.lines() {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	return b.String()
}

const includeFolder = "include"

// load reads the scripts of dir, sorted by name.
func load(dir string, found *problems) ([]*script, error) {
	mains, err := loadFolder(dir, found)
	if err != nil {
		return nil, err
	}
	if len(mains) == 0 {
		return nil, fmt.Errorf("luagen: no .lua file in %s", dir)
	}
	list, err := loadFolder(filepath.Join(dir, includeFolder), found)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	includes := make(map[string]*source, len(list))
	for _, inc := range list {
		includes[inc.name] = inc
		checkInclude(inc, found)
	}
	used := make(map[string]bool)
	scripts := make([]*script, 0, len(mains))
	for _, m := range mains {
		r := resolver{includes: includes, found: found}
		r.resolve(m, []string{m.file})
		for _, inc := range r.order {
			used[inc.name] = true
		}
		scripts = append(scripts, &script{*m, r.order})
	}
	for _, inc := range list {
		if !used[inc.name] && !found.in(inc.file) {
			found.add(position{inc.file, 1}, "no script includes this file")
		}
	}
	return scripts, nil
}

// loadFolder reads the .lua files of dir, sorted by name.
func loadFolder(dir string, found *problems) ([]*source, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("luagen: read the script folder: %w", err)
	}
	var list []*source
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".lua")
		if !ok || e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("luagen: read a script: %w", err)
		}
		list = append(list, parseSource(filepath.ToSlash(path), name, string(text), found))
	}
	return list, nil
}

// parseSource splits a file into header and code, and checks its syntax.
func parseSource(file, name, text string, found *problems) *source {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	s := &source{file: file, name: name}
	if !namePattern.MatchString(name) {
		found.add(position{file, 1}, "the file name must be letters and digits, the first a small letter")
		return s
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !utf8.ValidString(line) || strings.ContainsFunc(line, unprintable) {
			found.add(position{file, i + 1}, "the line holds control characters or is not UTF-8")
		}
	}
	if found.in(file) {
		return s
	}
	var n int
	s.header, n = parseHeader(file, name, lines, found)
	s.code = strip(file, lines, n, found)
	if len(s.code) == 0 && !found.in(file) {
		found.add(position{file, n}, "the file has no code")
	}
	if found.in(file) {
		return s
	}
	s.chunk = parseLua(s.code, found)
	return s
}

// unprintable finds what a Go file may not hold.
func unprintable(r rune) bool { return r != '\t' && (unicode.IsControl(r) || r == '\ufeff') }

// parseLua parses code, and returns nil after adding a problem if it cannot.
func parseLua(code []codeLine, found *problems) []ast.Stmt {
	texts := make([]string, len(code))
	for i, l := range code {
		texts[i] = l.text
	}
	chunk, err := parse.Parse(strings.NewReader(strings.Join(texts, "\n")), "script")
	if err == nil {
		return chunk
	}
	line, reason := 0, err.Error()
	if e := (*parse.Error)(nil); errors.As(err, &e) {
		line, reason = e.Pos.Line, fmt.Sprintf("near %q: %s", e.Token, e.Message)
	}
	found.add(origin(code, line), "does not compile: %s", reason)
	return nil
}

// checkInclude refuses in an include what only a script has.
func checkInclude(inc *source, found *problems) {
	h := inc.header
	for _, p := range slices.Concat(h.keys, h.argv) {
		found.add(p.at, "an include has no KEYS and no ARGV: make %s a parameter of its functions", p.name)
	}
	for _, r := range h.returns {
		found.add(r.at, "an include has no RETURNS: say in a comment what its functions return")
	}
	for _, stmt := range inc.chunk {
		at := origin(inc.code, stmt.Line())
		switch stmt.(type) {
		case *ast.FuncDefStmt:
			found.add(at, "functions of an include are declared with local function")
		case *ast.ReturnStmt:
			found.add(at, "return outside a function in an include: nothing after it would run")
		}
	}
	if h.idempotent {
		found.add(position{inc.file, 1}, "an include cannot be IDEMPOTENT: that is for the script to say")
	}
}

// resolver orders the includes of one script: each once, after those it includes.
type resolver struct {
	includes map[string]*source
	order    []*source
	found    *problems
}

// resolve adds what s includes. path holds the files that led to s, s last.
func (r *resolver) resolve(s *source, path []string) {
	for _, line := range s.header.includes {
		inc := r.includes[line.name]
		switch {
		case inc == nil:
			r.found.add(line.at, "there is no %s/%s.lua", includeFolder, line.name)
		case slices.Contains(path, inc.file):
			r.found.add(line.at, "INCLUDE %s goes round in a circle: %s", line.name, strings.Join(append(path, inc.file), " -> "))
		case !slices.Contains(r.order, inc):
			r.resolve(inc, append(slices.Clone(path), inc.file))
			r.order = append(r.order, inc)
		}
	}
}
