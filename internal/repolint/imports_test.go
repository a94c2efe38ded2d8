package repolint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A service that imports the engine gets these modules and no others.
var engineModules = []string{modulePath, "github.com/redis/rueidis", "golang.org/x/sys"}

// Programs sit on top of the engine, so they alone in internal/ may import it.
var programs = []string{"internal/cli", "internal/enginebench"}

// Modules and packages kept out of production code, and the folders that may
// import them all the same.
var testOnly = map[string][]string{
	"github.com/google/go-cmp":                    nil,
	"go.uber.org/goleak":                          {"internal/redistest"},
	"github.com/testcontainers/testcontainers-go": {"internal/redistest"},
	modulePath + "/internal/redistest":            {"internal/redistest", "internal/enginebench", "loadtest"},
	"github.com/alicebob/miniredis":               {"cmd", "internal/cli", "internal/redistest"},
}

// A goPackage is what go list tells of one package.
type goPackage struct {
	ImportPath, Dir                    string
	Imports, TestImports, XTestImports []string
	Standard                           bool
	Module                             *struct{ Path string }
	Error                              *struct{ Err string }
}

func listPackages(t *testing.T, env []string, arguments ...string) []goPackage {
	t.Helper()
	fields := "-json=ImportPath,Dir,Imports,TestImports,XTestImports,Standard,Module,Error"
	output := runGo(t, rootDir(t), env, append([]string{"list", fields}, arguments...)...)
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var listed goPackage
		err := decoder.Decode(&listed)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading go list: %v", err)
		}
		packages = append(packages, listed)
	}
}

// within reports whether path is parent or below it.
func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

func withinAny(path string, parents []string) bool {
	return slices.ContainsFunc(parents, func(parent string) bool { return within(path, parent) })
}

func TestEngineImportsOnlyRueidis(t *testing.T) {
	t.Parallel()
	files(t)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		env := []string{"GOOS=" + goos, "CGO_ENABLED=0"}
		for _, listed := range listPackages(t, env, "-deps", ".") {
			if !listed.Standard && !slices.Contains(engineModules, listed.Module.Path) {
				t.Errorf("GOOS=%s: the engine depends on %s of module %s", goos, listed.ImportPath, listed.Module.Path)
			}
			if listed.ImportPath != modulePath {
				continue
			}
			for _, imported := range listed.Imports {
				standard := !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
				if !standard && !within(imported, "github.com/redis/rueidis") && !within(imported, modulePath+"/internal") {
					t.Errorf("GOOS=%s: the root package imports %s; it may import the standard library, rueidis and internal/ only", goos, imported)
				}
			}
		}
	}
}

// TestConsumerGetsOnlyRueidis builds a program of another module that imports the
// engine, and reads the modules from its go.mod and from the binary.
func TestConsumerGetsOnlyRueidis(t *testing.T) {
	t.Parallel()
	files(t)
	dir := t.TempDir()
	goMod := "module example.com/consumer\n\ngo 1.25.0\n\nrequire " + modulePath + " v0.0.0\n\nreplace " + modulePath + " => " + rootDir(t) + "\n"
	program := "package main\n\nimport _ \"" + modulePath + "\"\n\nfunc main() {}\n"
	for name, content := range map[string]string{"go.mod": goMod, "go.sum": read(t, "go.sum"), "main.go": program} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// GOWORK and GOFLAGS of the developer must not decide what a stranger gets.
	env := []string{"GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0"}
	runGo(t, dir, env, "build", "-o", "consumer", ".")

	var required struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(runGo(t, dir, env, "mod", "edit", "-json"), &required); err != nil {
		t.Fatal(err)
	}
	for _, module := range required.Require {
		if !slices.Contains(engineModules, module.Path) {
			t.Errorf("the consumer's go.mod requires %s", module.Path)
		}
	}
	engineSeen := false
	for line := range strings.Lines(string(runGo(t, dir, env, "version", "-m", "consumer"))) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "dep" {
			continue
		}
		engineSeen = engineSeen || fields[1] == modulePath
		if !slices.Contains(engineModules, fields[1]) {
			t.Errorf("the consumer's binary contains module %s", fields[1])
		}
	}
	if !engineSeen {
		t.Error("the consumer's binary does not name the engine: this test proves nothing")
	}
}

func TestInternalNeverImportsEngine(t *testing.T) {
	t.Parallel()
	files(t)
	for _, listed := range listPackages(t, nil, "./internal/...") {
		folder := strings.TrimPrefix(listed.ImportPath, modulePath+"/")
		if withinAny(folder, programs) {
			continue
		}
		if slices.Contains(slices.Concat(listed.Imports, listed.TestImports, listed.XTestImports), modulePath) {
			t.Errorf("%s imports the root package: internal packages are below it", folder)
		}
	}
}

func TestProductionImportsNoTestModules(t *testing.T) {
	t.Parallel()
	files(t)
	for _, listed := range listPackages(t, nil, "./...") {
		folder := strings.TrimPrefix(listed.ImportPath, modulePath+"/")
		for _, imported := range listed.Imports {
			for kept, allowed := range testOnly {
				if within(imported, kept) && !withinAny(folder, allowed) {
					t.Errorf("%s imports %s outside its tests", folder, imported)
				}
			}
		}
	}
}
