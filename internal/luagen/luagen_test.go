package luagen

import (
	"crypto/sha1"
	"encoding/hex"
	"flag"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	luaparse "github.com/yuin/gopher-lua/parse"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const golden = "testdata/lua_gen.golden"

// sample is what the golden file is made of.
var sample = Config{
	Lua: "testdata/lua", Out: golden, Package: "sample",
	Keys: "github.com/xstreamq/xstreamq/internal/keys.Set",
}

func TestGolden(t *testing.T) {
	t.Parallel()
	got, err := Generate(sample)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("generated code differs from the golden file (-want +got):\n%s", diff)
	}
}

// TestGeneratedFileHolds reads the generated file back as Go, and its sources as Lua.
func TestGeneratedFileHolds(t *testing.T) {
	t.Parallel()
	src, err := Generate(sample)
	if err != nil {
		t.Fatal(err)
	}
	formatted, err := format.Source(src)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(formatted), string(src)); diff != "" {
		t.Errorf("not in the form of gofmt:\n%s", diff)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "lua_gen.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if !ast.IsGenerated(file) {
		t.Error("Go tools do not take the file for a generated one")
	}
	consts := stringConsts(t, file)
	for _, name := range []string{"ack", "clear", "drop", "fail"} {
		source := consts[name+"Source"]
		sum := sha1.Sum([]byte(source))
		if got, want := consts[name+"SHA"], hex.EncodeToString(sum[:]); got != want {
			t.Errorf("%sSHA = %q, want %q, the hash of %sSource", name, got, want, name)
		}
		if _, err := luaparse.Parse(strings.NewReader(source), name); err != nil {
			t.Errorf("%sSource is not Lua: %v", name, err)
		}
	}
	const clearSource = "redis.log(redis.LOG_NOTICE, 'clear `' .. KEYS[1] .. \"` -- gone\")\nreturn redis.call('DEL', KEYS[1])\n"
	if diff := cmp.Diff(clearSource, consts["clearSource"]); diff != "" {
		t.Errorf("clearSource (-want +got):\n%s", diff)
	}
}

// stringConsts evaluates the string constants of a file.
func stringConsts(t *testing.T, file *ast.File) map[string]string {
	t.Helper()
	consts := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		text, isString := "", true
		ast.Inspect(spec.Values[0], func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				part, err := strconv.Unquote(n.Value)
				isString = isString && err == nil
				text += part
			case *ast.BinaryExpr, nil:
			default:
				isString = false
			}
			return true
		})
		if isString {
			consts[spec.Names[0].Name] = text
		}
		return true
	})
	return consts
}

// write puts files, by their path below the script folder, into a new folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lua")
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// config is for scripts whose key type is in their own package.
func config(dir string) Config {
	return Config{Lua: dir, Out: filepath.Join(filepath.Dir(dir), "lua_gen.go"), Package: "sample", Keys: "keySet"}
}

func TestKeysOfOwnPackage(t *testing.T) {
	t.Parallel()
	src, err := Generate(config(write(t, map[string]string{
		"del.lua": "-- del: deletes it.\n-- KEYS 1 Queue the stream\nreturn redis.call('DEL', KEYS[1])\n",
	})))
	if err != nil {
		t.Fatal(err)
	}
	const want = "func runDel(ctx context.Context, c rueidis.Client, k keySet) rueidis.RedisResult {"
	if !strings.Contains(string(src), want) {
		t.Errorf("no %q in:\n%s", want, src)
	}
	if strings.Contains(string(src), "strconv") || strings.Contains(string(src), "luaBool") {
		t.Errorf("what no script needs is in:\n%s", src)
	}
}

func TestLineEndsDoNotMatter(t *testing.T) {
	t.Parallel()
	const script = "-- del: deletes it.\n-- KEYS 1 Queue the stream\n\n-- A comment.\nreturn redis.call('DEL', KEYS[1])\n"
	unix, err := Generate(config(write(t, map[string]string{"del.lua": script})))
	if err != nil {
		t.Fatal(err)
	}
	windows, err := Generate(config(write(t, map[string]string{"del.lua": strings.ReplaceAll(script, "\n", "\r\n")})))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(unix), string(windows)); diff != "" {
		t.Errorf("line ends change the result:\n%s", diff)
	}
}

func TestFresh(t *testing.T) {
	t.Parallel()
	const script = "-- del: deletes it.\n-- KEYS 1 Queue the stream\nreturn redis.call('DEL', KEYS[1])\n"
	cfg := config(write(t, map[string]string{"del.lua": script}))
	fails := func(when string) {
		t.Helper()
		if err := Fresh(cfg); err == nil || !strings.Contains(err.Error(), "run go generate ./...") {
			t.Errorf("Fresh %s = %v, want an error that says to run go generate ./...", when, err)
		}
	}
	fails("without the file")
	if err := Write(cfg); err != nil {
		t.Fatal(err)
	}
	if err := Fresh(cfg); err != nil {
		t.Errorf("Fresh after Write = %v, want nil", err)
	}
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(cfg.Lua, "del.lua"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite(strings.ReplaceAll(script, "DEL", "UNLINK"))
	fails("after a change of the script")

	rewrite("broken")
	before, err := os.ReadFile(cfg.Out)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(cfg); err == nil {
		t.Error("Write of a broken script = nil, want an error")
	}
	if err := Fresh(cfg); err == nil {
		t.Error("Fresh with a broken script = nil, want an error")
	}
	after, err := os.ReadFile(cfg.Out)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("a Write that failed changed the file")
	}
}

func TestFieldName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"group": "Group", "id": "ID", "ids": "IDs", "url": "URL",
		"messageId": "MessageID", "idleMs": "IdleMs", "maxLen": "MaxLen", "entryIds": "EntryIDs",
	} {
		if got := fieldName(name); got != want {
			t.Errorf("fieldName(%q) = %q, want %q", name, got, want)
		}
	}
}
