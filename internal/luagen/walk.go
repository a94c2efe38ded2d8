package luagen

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// block walks statements in a scope of their own that already holds names.
func (c *checker) block(stmts []ast.Stmt, names ...string) {
	c.open(stmts, names)
	c.close()
}

// open walks statements and leaves their scope open.
func (c *checker) open(stmts []ast.Stmt, names []string) {
	c.scopes = append(c.scopes, map[string]string{})
	for _, name := range names {
		c.declare(c.at(c.line), name)
	}
	for _, s := range stmts {
		c.line = s.Line()
		c.stmt(s)
	}
}

func (c *checker) close() { c.scopes = c.scopes[:len(c.scopes)-1] }

func (c *checker) stmt(s ast.Stmt) {
	at := c.at(s.Line())
	switch s := s.(type) {
	case *ast.AssignStmt:
		c.exprs(s.Rhs)
		for _, target := range s.Lhs {
			c.assign(at, target)
		}
	case *ast.LocalAssignStmt:
		c.localAssign(at, s)
	case *ast.FuncCallStmt:
		c.expr(s.Expr)
	case *ast.DoBlockStmt:
		c.block(s.Stmts)
	case *ast.WhileStmt:
		c.expr(s.Condition)
		c.block(s.Stmts)
	case *ast.RepeatStmt:
		c.open(s.Stmts, nil)
		c.expr(s.Condition) // sees the locals of the body
		c.close()
	case *ast.IfStmt:
		c.expr(s.Condition)
		c.block(s.Then)
		c.block(s.Else)
	case *ast.NumberForStmt:
		c.numberFor(at, s)
	case *ast.GenericForStmt:
		c.exprs(s.Exprs)
		c.block(s.Stmts, s.Names...)
	case *ast.FuncDefStmt:
		c.funcDef(at, s)
	case *ast.ReturnStmt:
		c.exprs(s.Exprs)
	case *ast.GotoStmt, *ast.LabelStmt:
		c.found.add(at, "goto is not Lua 5.1")
	}
}

func (c *checker) localAssign(at position, s *ast.LocalAssignStmt) {
	// "local function f" sees itself; the tree does not tell it from "local f = function".
	recursive := len(s.Names) == 1 && len(s.Exprs) == 1 && isFunction(s.Exprs[0])
	if !recursive {
		c.exprs(s.Exprs)
	}
	for _, name := range s.Names {
		c.declare(at, name)
	}
	if recursive {
		c.exprs(s.Exprs)
	}
}

func isFunction(e ast.Expr) bool {
	_, ok := e.(*ast.FunctionExpr)
	return ok
}

func (c *checker) numberFor(at position, s *ast.NumberForStmt) {
	c.exprs([]ast.Expr{s.Init, s.Limit, s.Step})
	if limit, ok := s.Limit.(*ast.UnaryLenOpExpr); ok && c.global(limit.Expr, "ARGV") {
		if n, ok := literal(s.Init); ok {
			c.from(at, n)
		}
	}
	c.block(s.Stmts, s.Name)
}

// funcDef judges "function name()", which assigns to name.
func (c *checker) funcDef(at position, s *ast.FuncDefStmt) {
	target := s.Name.Func
	if target == nil {
		target = s.Name.Receiver
	}
	c.assign(at, target)
	c.expr(s.Func)
}

func (c *checker) exprs(list []ast.Expr) {
	for _, e := range list {
		c.expr(e)
	}
}

func (c *checker) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		c.ident(e)
	case *ast.NumberExpr:
		if n, ok := literal(e); ok {
			c.numbers[int64(n)] = true
		}
	case *ast.StringExpr:
		// Patterns close their parenthesis; the start of a range id never does.
		if strings.HasPrefix(e.Value, "(") && !strings.Contains(e.Value, ")") {
			c.found.add(c.at(e.Line()), "string %q: exclusive ranges are not to be had on every server", e.Value)
		}
	case *ast.AttrGetExpr:
		c.get(e)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			c.exprs([]ast.Expr{f.Key, f.Value})
		}
	case *ast.FuncCallExpr:
		c.call(e)
	case *ast.FunctionExpr:
		c.line = e.Line()
		c.block(e.Stmts, e.ParList.Names...)
	case *ast.LogicalOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.RelationalOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.StringConcatOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.ArithmeticOpExpr:
		c.exprs([]ast.Expr{e.Lhs, e.Rhs})
	case *ast.UnaryMinusOpExpr:
		if n, ok := literal(e.Expr); ok {
			c.numbers[-int64(n)] = true
		}
		c.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		c.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		c.expr(e.Expr)
	}
}

// ident judges a name that is not the object of an index.
func (c *checker) ident(e *ast.IdentExpr) {
	at := c.at(e.Line())
	c.name(at, e.Value)
	switch {
	case c.global(e, "KEYS"):
		c.found.add(at, "KEYS is used as a whole: name the key by a literal index")
	case c.global(e, "ARGV"):
		c.tail(at, "ARGV is used as a whole")
	case c.global(e, "redis"):
		c.found.add(at, "redis is used as a whole: name the function")
	}
}

func (c *checker) call(e *ast.FuncCallExpr) {
	if e.Receiver != nil {
		c.expr(e.Receiver)
	} else {
		c.expr(e.Func)
	}
	c.exprs(e.Args)
	if c.global(e.Func, "unpack") && len(e.Args) > 0 && c.global(e.Args[0], "ARGV") {
		n := 1
		if len(e.Args) > 1 {
			var ok bool
			if n, ok = literal(e.Args[1]); !ok {
				return
			}
		}
		c.from(c.at(e.Line()), n)
	}
}
