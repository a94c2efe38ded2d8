package repolint

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const modulePath = "github.com/xstreamq/xstreamq"

// root is the top folder of the repository, seen from this package.
var root = sync.OnceValues(func() (string, error) { return filepath.Abs("../..") })

func rootDir(t *testing.T) string {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// files lists the repository's files: slash-separated, relative to the root,
// sorted. Files that git ignores are left out where git is at hand; files not yet
// committed are in.
func files(t *testing.T) []string {
	t.Helper()
	found, err := repositoryFiles()
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var repositoryFiles = sync.OnceValues(func() ([]string, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	// The walk also tells go test which folders the result depends on, so that a
	// cached pass is not reused after a file was added.
	onDisk, err := walk(dir)
	if err != nil {
		return nil, err
	}
	listed, err := gitFiles(dir)
	if err != nil {
		// No git, or a copy without .git: check everything that is there.
		return onDisk, nil
	}
	return slices.DeleteFunc(onDisk, func(file string) bool { return !listed[file] }), nil
})

func walk(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == ".bin"):
			return filepath.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		relative, err := filepath.Rel(dir, path)
		found = append(found, filepath.ToSlash(relative))
		return err
	})
	return found, err
}

// gitFiles returns the files that git tracks, and those it would offer to add.
func gitFiles(dir string) (map[string]bool, error) {
	command := exec.CommandContext(context.Background(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	command.Dir = dir
	output, err := command.Output()
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for name := range bytes.SplitSeq(output, []byte{0}) {
		listed[string(name)] = true
	}
	return listed, nil
}

// filesNamed returns the files whose name ends in one of the suffixes.
func filesNamed(t *testing.T, suffixes ...string) []string {
	t.Helper()
	var named []string
	for _, file := range files(t) {
		if slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(file, suffix) }) {
			named = append(named, file)
		}
	}
	return named
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(rootDir(t), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// runGo executes the go command in dir and returns its standard output.
func runGo(t *testing.T, dir string, env []string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, stderr.String())
	}
	return output
}
