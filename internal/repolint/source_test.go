package repolint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxFileLines     = 400
	maxFunctionLines = 80
)

// A sourceFile is one Go file of the repository, parsed.
type sourceFile struct {
	name      string
	lines     int
	syntax    *ast.File
	positions *token.FileSet
}

func (f sourceFile) generated() bool { return ast.IsGenerated(f.syntax) }

// productionFiles parses the Go files that are not tests, testdata left out.
func productionFiles(t *testing.T) []sourceFile {
	t.Helper()
	var parsed []sourceFile
	for _, name := range filesNamed(t, ".go") {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		text := read(t, name)
		positions := token.NewFileSet()
		syntax, err := parser.ParseFile(positions, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, sourceFile{name, strings.Count(text, "\n"), syntax, positions})
	}
	return parsed
}

func TestFileLength(t *testing.T) {
	t.Parallel()
	for _, file := range productionFiles(t) {
		if !file.generated() && file.lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d: split it by purpose", file.name, file.lines, maxFileLines)
		}
	}
}

func TestFunctionLength(t *testing.T) {
	t.Parallel()
	for _, file := range productionFiles(t) {
		if file.generated() {
			continue
		}
		for _, declaration := range file.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			start := file.positions.Position(function.Pos())
			lines := file.positions.Position(function.End()).Line - start.Line + 1
			if lines > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines, more than %d", file.name, start.Line, function.Name.Name, lines, maxFunctionLines)
			}
		}
	}
}

func TestOnePackageComment(t *testing.T) {
	t.Parallel()
	commented := map[string][]string{}
	for _, file := range productionFiles(t) {
		folder := path.Dir(file.name)
		if file.syntax.Doc != nil {
			commented[folder] = append(commented[folder], path.Base(file.name))
		} else if commented[folder] == nil {
			commented[folder] = []string{}
		}
	}
	for folder, names := range commented {
		switch len(names) {
		case 1:
		case 0:
			t.Errorf("package in %s has no package comment", folder)
		default:
			t.Errorf("package in %s has %d package comments, in %s: keep one", folder, len(names), strings.Join(names, ", "))
		}
	}
}

func TestShellScriptsParse(t *testing.T) {
	t.Parallel()
	scripts := filesNamed(t, ".sh", ".ci/run")
	if len(scripts) == 0 {
		t.Fatal("no shell script found")
	}
	for _, script := range scripts {
		command := exec.CommandContext(t.Context(), "bash", "-n", script)
		command.Dir = filepath.Clean(rootDir(t))
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, output)
		}
	}
}
