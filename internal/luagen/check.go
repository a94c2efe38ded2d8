package luagen

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
)

// allowedGlobals is what every supported server offers. Left out on purpose:
// cmsgpack, struct and bit (not on every server), loadstring, os and io (no
// business of a queue).
var allowedGlobals = []string{
	"KEYS", "ARGV", "redis", "cjson", "string", "table", "math",
	"assert", "error", "ipairs", "next", "pairs", "pcall", "select",
	"tonumber", "tostring", "type", "unpack",
}

// allowedRedis is what may be used of the redis table.
var allowedRedis = []string{
	"call", "pcall", "error_reply", "status_reply", "sha1hex",
	"log", "LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING",
}

// checker walks the syntax tree of one script with its includes.
type checker struct {
	script  *script
	lines   []codeLine
	found   *problems
	scopes  []map[string]string // innermost last: local name -> file that declares it
	uses    map[[2]string]bool  // {using file, declaring file}
	keys    map[int]bool        // KEYS indices used
	args    map[int]bool        // ARGV indices used
	rest    bool                // ARGV used other than by a literal index
	numbers map[int64]bool      // number literals
	line    int                 // of the statement being walked, for the names of its scope
}

// check reports where the code of a script breaks the rules or its header.
func check(s *script, found *problems) {
	c := &checker{
		script: s, lines: s.lines(), found: found,
		uses: map[[2]string]bool{}, keys: map[int]bool{}, args: map[int]bool{}, numbers: map[int64]bool{},
	}
	chunk := parseLua(c.lines, found)
	if chunk == nil {
		return
	}
	c.block(chunk)
	c.compile(chunk)
	c.header()
}

// compile finds what the syntax alone does not show, as a break outside a loop.
func (c *checker) compile(chunk []ast.Stmt) {
	_, err := lua.Compile(chunk, c.script.name)
	if e := (*lua.CompileError)(nil); errors.As(err, &e) {
		c.found.add(c.at(e.Line), "does not compile: %s", e.Message)
	}
}

// header reports what the header declares and the code does not use.
func (c *checker) header() {
	h := c.script.header
	if len(h.keys) == 0 {
		c.found.add(position{c.script.file, 1}, "no KEYS: a cluster could not tell where the script runs")
	}
	for i, k := range h.keys {
		if !c.keys[i+1] {
			c.found.add(k.at, "KEYS[%d] %s is not used in the code", i+1, k.name)
		}
	}
	for i, a := range h.argv {
		if !c.args[i+1] && !(a.tail && c.rest) {
			c.found.add(a.at, "ARGV[%d] %s is not used in the code", i+1, a.name)
		}
	}
	for _, r := range h.returns {
		if r.name != "" && !c.numbers[r.code] {
			c.found.add(r.at, "result %d %s does not occur in the code", r.code, r.name)
		}
	}
	for _, s := range append(slices.Clone(c.script.includes), &c.script.source) {
		for _, inc := range s.header.includes {
			i := slices.IndexFunc(c.script.includes, func(o *source) bool { return o.name == inc.name })
			if !c.uses[[2]string{s.file, c.script.includes[i].file}] {
				c.found.add(inc.at, "nothing of %s is used here", inc.name)
			}
		}
	}
}

// at returns where a line of the flattened source came from.
func (c *checker) at(line int) position { return origin(c.lines, line) }

func (c *checker) inInclude(at position) bool { return at.file != c.script.file }

// declare adds a local name to the innermost scope.
func (c *checker) declare(at position, name string) {
	scope := c.scopes[len(c.scopes)-1]
	if name == "KEYS" || name == "ARGV" || name == "redis" {
		c.found.add(at, "local %s hides the global of that name", name)
	}
	if file, ok := scope[name]; ok && file != at.file && c.inInclude(at) {
		c.found.add(at, "local %s is declared already in %s", name, file)
	}
	scope[name] = at.file
}

// local returns the file that declares name, empty for a global.
func (c *checker) local(name string) string {
	for _, scope := range slices.Backward(c.scopes) {
		if file, ok := scope[name]; ok {
			return file
		}
	}
	return ""
}

// name judges the use of a name.
func (c *checker) name(at position, name string) {
	if file := c.local(name); file != "" {
		c.uses[[2]string{at.file, file}] = true
		return
	}
	switch {
	case name == "KEYS" || name == "ARGV":
		if c.inInclude(at) {
			c.found.add(at, "%s in an include: make it a parameter of the function", name)
		}
	case !slices.Contains(allowedGlobals, name):
		c.found.add(at, "global %s: not declared here, nor one that every server has", name)
	}
}

// assign judges what is assigned to: it must belong to a local.
func (c *checker) assign(at position, target ast.Expr) {
	root := target
	for {
		get, ok := root.(*ast.AttrGetExpr)
		if !ok {
			break
		}
		root = get.Object
	}
	if id, ok := root.(*ast.IdentExpr); ok && c.local(id.Value) == "" {
		c.found.add(at, "assignment to global %s: declare it local", id.Value)
		return
	}
	c.expr(target)
}

// global reports whether e is the global called name.
func (c *checker) global(e ast.Expr, name string) bool {
	id, ok := e.(*ast.IdentExpr)
	return ok && id.Value == name && c.local(name) == ""
}

// get judges an index expression; KEYS, ARGV and redis have rules of their own.
func (c *checker) get(e *ast.AttrGetExpr) {
	at := c.at(e.Line())
	c.expr(e.Key)
	switch {
	case c.global(e.Object, "KEYS"):
		c.name(at, "KEYS")
		if n, ok := literal(e.Key); !ok {
			c.found.add(at, "index of KEYS is not a literal number")
		} else if c.keys[n] = true; !c.inInclude(at) && (n < 1 || n > len(c.script.header.keys)) {
			c.found.add(at, "KEYS[%d] is not declared in the header", n)
		}
	case c.global(e.Object, "ARGV"):
		c.name(at, "ARGV")
		c.arg(at, e.Key)
	case c.global(e.Object, "redis"):
		key, ok := e.Key.(*ast.StringExpr)
		if !ok || !slices.Contains(allowedRedis, key.Value) {
			c.found.add(at, "of redis only %s may be used", strings.Join(allowedRedis, ", "))
		}
	default:
		c.expr(e.Object)
	}
}

// arg judges an index of ARGV.
func (c *checker) arg(at position, key ast.Expr) {
	n, ok := literal(key)
	if !ok {
		c.tail(at, "index of ARGV that is not a literal number")
		return
	}
	tail := c.script.header.tail()
	if tail > 0 && n > tail {
		n = tail
	}
	c.args[n] = true
	if !c.inInclude(at) && (n < 1 || n > len(c.script.header.argv)) {
		c.found.add(at, "ARGV[%d] is not declared in the header", n)
	}
}

// tail judges a use of ARGV as a whole.
func (c *checker) tail(at position, what string) {
	c.rest = true
	if !c.inInclude(at) && c.script.header.tail() == 0 {
		c.found.add(at, `%s, but the header declares no "ARGV n... name strings"`, what)
	}
}

// from judges the first index of a walk over the rest of ARGV.
func (c *checker) from(at position, n int) {
	if tail := c.script.header.tail(); tail > 0 && n < tail {
		c.found.add(at, "starts at ARGV[%d], but the rest starts at ARGV[%d]", n, tail)
	}
}

// literal returns the value of an integer literal.
func literal(e ast.Expr) (int, bool) {
	num, ok := e.(*ast.NumberExpr)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(num.Value)
	return n, err == nil
}
