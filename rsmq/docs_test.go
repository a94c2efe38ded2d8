package rsmq

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = "../docs/rsmq.md"

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The Go code of the document is part of an example, which runs.
func TestDocumentedCode(t *testing.T) {
	t.Parallel()
	examples := strings.ReplaceAll(readFile(t, "example_test.go"), "\n\t", "\n")
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(readFile(t, document), -1)
	if len(blocks) == 0 {
		t.Fatal("there is no code")
	}
	for _, block := range blocks {
		if !strings.Contains(examples, block[1]) {
			t.Errorf("no example has this:\n%s", block[1])
		}
	}
}

// The document names every option of the worker, with its default.
func TestDocumentedWorker(t *testing.T) {
	t.Parallel()
	defaults := reflect.ValueOf(WorkerOptions{}.withDefaults())
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\|[^|]*\\| `([A-Z]\\w+)` \\| ([^|]+) \\|").FindAllStringSubmatch(readFile(t, document), -1) {
		documented[row[1]] = row[2]
	}
	for i := range defaults.NumField() {
		name, value := defaults.Type().Field(i).Name, defaults.Field(i)
		want := strings.Trim(strings.ReplaceAll(fmt.Sprint(value.Interface()), " ", ", "), "[]")
		switch {
		case value.Kind() == reflect.Func, value.Kind() == reflect.Struct:
			want = "none"
		case name == "Intervals":
			want = strings.Replace(want, "0s", "0", 1)
		}
		if documented[name] != want {
			t.Errorf("%s: the document says %q, the default is %q", name, documented[name], want)
		}
	}
}

// The document lists the routes of the REST service, and no other.
func TestDocumentedRoutes(t *testing.T) {
	t.Parallel()
	var api struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(readFile(t, "../internal/rsmqrest/openapi.json")), &api); err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for path, methods := range api.Paths {
		for method := range methods {
			if method != "parameters" {
				want = append(want, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]*)` \\|").FindAllStringSubmatch(readFile(t, document), -1) {
		got = append(got, row[1])
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes (-service +document):\n%s", diff)
	}
}

// The document lists every operation of the client.
func TestDocumentedOperations(t *testing.T) {
	t.Parallel()
	text := readFile(t, document)
	client := reflect.TypeFor[*Client]()
	for i := range client.NumMethod() {
		if name := client.Method(i).Name; !strings.Contains(text, name) {
			t.Errorf("%s is not named", name)
		}
	}
}
