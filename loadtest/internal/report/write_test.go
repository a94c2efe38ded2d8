package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.html")
	for range 2 { // the second one replaces the first
		var out bytes.Buffer
		o := Output{JSON: true, Page: path}
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		if err := o.Write(sample(), &out); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) {
			t.Errorf("no JSON: %s", out.String())
		}
	}
	page, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(string(page), "</html>\n") {
		t.Errorf("the page is %q, %v", page, err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("beside the page: %v, %v", files, err)
	}
	var out bytes.Buffer
	if err := (Output{}).Write(sample(), &out); err != nil || !strings.HasPrefix(out.String(), "chaos: BROKEN\n") {
		t.Errorf("text %q, %v", out.String(), err)
	}
}

// A page that cannot be written is an error, and the text is there all the same.
func TestTextWithoutPage(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	o := Output{Page: filepath.Join(t.TempDir(), "gone", "report.html")}
	if err := o.Write(sample(), &out); err == nil || !strings.HasPrefix(out.String(), "chaos: BROKEN\n") {
		t.Errorf("text %q, %v", out.String(), err)
	}
}

func TestOutputCheck(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for path, want := range map[string]string{
		"/proc/new.html": "cannot be written", // a folder in which nobody can make a file
		"":               "", filepath.Join(folder, "new.html"): "", filepath.Join(folder, "none", "new.html"): "there is no folder", folder: "is a folder",
	} {
		err := Output{Page: path}.Check()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
