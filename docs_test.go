package xstreamq_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// documents are the texts that the tests below keep true.
var documents = []string{"README.md", "docs/contract.md", "docs/message-path.md", "docs/operations.md"}

// Order is what the examples publish.
type Order struct {
	ID int `json:"id"`
}

// The bodies of the following functions are the Go code of the documents, word for word.

func docsOrders(ctx context.Context, url string, ship func(context.Context, Order) error) error {
	client, err := xstreamq.Open(url, xstreamq.Config{})
	if err != nil {
		return err
	}
	defer client.Close()

	orders, err := xstreamq.NewQueue[Order](client, "orders")
	if err != nil {
		return err
	}
	_, err = orders.Subscribe("shipping", func(ctx context.Context, m *xstreamq.Message[Order]) error {
		return ship(ctx, m.Body) // nil ends the message, an error retries it
	}, xstreamq.SubscribeOptions{})
	if err != nil {
		return err
	}
	if _, err := orders.Publish(ctx, Order{ID: 1}); err != nil {
		return err
	}
	return client.Run(ctx) // until ctx ends; then it drains
}

func docsProbes(client *xstreamq.Client) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/readyz", client.HealthHandler())
	mux.Handle("/livez", client.HealthHandler())
	return mux
}

func readDoc(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docBlock is one fenced block.
type docBlock struct {
	line     int
	language string
	text     string
}

func docBlocks(text string) []docBlock {
	var blocks []docBlock
	var open *docBlock
	for i, line := range strings.Split(text, "\n") {
		language, fenced := strings.CutPrefix(line, "```")
		switch {
		case fenced && open == nil:
			open = &docBlock{line: i + 1, language: language}
		case fenced:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	return blocks
}

// docColumn returns one column of the tables under a heading, without backquotes, from every row but the header.
func docColumn(t *testing.T, text, headed string, column int) []string {
	t.Helper()
	var cells []string
	inside := false
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		first := strings.TrimSpace(row[0])
		switch {
		case first == headed:
			inside = true
		case inside && !strings.HasPrefix(first, "---") && column < len(row):
			cells = append(cells, strings.Trim(strings.TrimSpace(row[column]), "`"))
		}
	}
	if len(cells) == 0 {
		t.Fatalf("no table headed %q", headed)
	}
	return cells
}

// goBodies returns the bodies of this file's functions whose name begins with docs, as a document shows them.
func goBodies(t *testing.T) []string {
	t.Helper()
	const self = "docs_test.go"
	source := readDoc(t, self)
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, self, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	silenced := regexp.MustCompile(` //nolint:.*`)
	var bodies []string
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || !strings.HasPrefix(f.Name.Name, "docs") {
			continue
		}
		body := source[files.Position(f.Body.Lbrace).Offset+2 : files.Position(f.Body.Rbrace).Offset]
		body = silenced.ReplaceAllString(body, "")
		body = strings.ReplaceAll("\n"+body, "\n\t", "\n")[1:]
		bodies = append(bodies, strings.ReplaceAll(body, "Open(url,", `Open("redis://localhost:6379",`))
	}
	return bodies
}

// The Go code of the documents compiles, and the package documentation shows the same.
func TestDocumentedGoCode(t *testing.T) {
	t.Parallel()
	bodies := goBodies(t)
	shown := 0
	for _, name := range documents {
		for _, block := range docBlocks(readDoc(t, name)) {
			if block.language != "go" {
				continue
			}
			shown++
			if !slices.ContainsFunc(bodies, func(b string) bool { return strings.TrimSuffix(b, "return mux\n") == block.text }) {
				t.Errorf("%s:%d: the code is not the body of a function of docs_test.go", name, block.line)
			}
		}
	}
	if shown < len(bodies) {
		t.Errorf("%d functions, but only %d blocks of Go in the documents", len(bodies), shown)
	}
	if lines := strings.Count(bodies[0], "\n"); lines > 22 {
		t.Errorf("the first example has %d lines: a reader wants 20", lines)
	}
	comment := strings.ReplaceAll(readDoc(t, "doc.go"), "\n//\n", "\n//\t\n")
	var quoted strings.Builder
	for line := range strings.Lines(comment) {
		if code, ok := strings.CutPrefix(line, "//\t"); ok {
			quoted.WriteString(code)
		}
	}
	if got := quoted.String(); !strings.Contains(got, bodies[0]) {
		t.Errorf("doc.go shows another example (-README +doc.go):\n%s", cmp.Diff(bodies[0], got))
	}
}

// The first example of the README handles its message and drains when its context ends.
func TestDocumentedExampleRuns(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	shipped := make(chan Order, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- docsOrders(ctx, server.URL(), func(_ context.Context, o Order) error {
			shipped <- o
			return nil
		})
	}()
	select {
	case got := <-shipped:
		if got.ID != 1 {
			t.Errorf("shipped %+v", got)
		}
	case err := <-ended:
		t.Fatalf("it ended before the message was handled: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("the message was not handled")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// The probes answer as the README and operations.md say: readiness fails while the client drains, liveness does not.
func TestDocumentedProbes(t *testing.T) {
	t.Parallel()
	client := open(t, xstreamq.Config{KeyPrefix: redistest.Prefix(t)})
	probes := docsProbes(client)
	check := func(path string, want int) {
		t.Helper()
		answer := httptest.NewRecorder()
		probes.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if answer.Code != want {
			t.Errorf("%s answers %d, want %d: %s", path, answer.Code, want, answer.Body)
		}
		if !json.Valid(answer.Body.Bytes()) {
			t.Errorf("%s answers no JSON: %s", path, answer.Body)
		}
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("/readyz", http.StatusOK)
	check("/livez", http.StatusOK)
	if err := client.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("/readyz", http.StatusServiceUnavailable)
	check("/livez", http.StatusOK)
}

// Commands in shell blocks are among those that .ci/run runs, through make or as a recipe of one of its targets.
func TestDocumentedCommandsRunInCI(t *testing.T) {
	t.Parallel()
	makefile := readDoc(t, "Makefile")
	run := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^step .*\bmake ([a-z/]+)`).FindAllStringSubmatch(readDoc(t, ".ci/run"), -1) {
		run["make "+match[1]] = true
		_, recipe, _ := strings.Cut(makefile, "\n"+match[1]+":")
		recipe, _, _ = strings.Cut(recipe, "\n\n")
		for line := range strings.Lines(recipe) {
			if command, ok := strings.CutPrefix(line, "\t"); ok {
				run[strings.ReplaceAll(strings.TrimSpace(command), "$(GO)", "go")] = true
			}
		}
	}
	for _, name := range documents {
		for _, block := range docBlocks(readDoc(t, name)) {
			if block.language != "sh" {
				continue
			}
			for line := range strings.Lines(block.text) {
				command, _, _ := strings.Cut(line, "#")
				if command = strings.TrimSpace(command); !run[command] {
					t.Errorf("%s:%d: .ci/run does not run %q", name, block.line, command)
				}
			}
		}
	}
}
