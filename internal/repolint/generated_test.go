package repolint

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	luagenDirective = regexp.MustCompile(`(?m)^//go:generate go (run \S*internal/luagen/cmd\b.*)$`)
	outFlag         = regexp.MustCompile(`-out[ =](\S+)`)
)

// TestGeneratedLuaIsFresh runs each luagen directive as go generate would, into
// another file, and compares that with what is in the repository.
func TestGeneratedLuaIsFresh(t *testing.T) {
	t.Parallel()
	directives := 0
	for _, file := range productionFiles(t) {
		for _, match := range luagenDirective.FindAllStringSubmatch(read(t, file.name), -1) {
			directives++
			generated := "lua_gen.go"
			if out := outFlag.FindStringSubmatch(match[1]); out != nil {
				generated = out[1]
			}
			folder := filepath.Join(rootDir(t), path.Dir(file.name))
			again := filepath.Join(t.TempDir(), "again.go")
			runGo(t, folder, []string{"GOPACKAGE=" + file.syntax.Name.Name}, append(strings.Fields(match[1]), "-out", again)...)

			want, err := os.ReadFile(again)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(folder, generated))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s of the directive in %s is stale (%v): run make generate and commit the result", generated, file.name, err)
			}
		}
	}
	if directives == 0 {
		t.Error("no //go:generate directive runs internal/luagen/cmd: this test proves nothing")
	}
}
