package rsmqrest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/rsmq"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// openAPI is what the tests know of the service: its document, as it serves it.
type openAPI struct {
	t       *testing.T
	server  *httptest.Server
	token   string
	calls   map[string]call // by operationId
	schemas *jsonschema.Compiler
	seen    map[string]bool // "operationId status" that was answered
}

// call is how an operation is called.
type call struct {
	path, method string
	statuses     []string
}

const documentURL = "https://example.com/openapi.json"

// serve starts the service and reads its document.
func serve(t *testing.T, url string, o Options) *openAPI {
	t.Helper()
	client, err := rsmq.Open(url, rsmq.Config{Namespace: redistest.Prefix(t) + "rsmq"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(New(client, o))
	t.Cleanup(func() {
		server.Close()
		client.Close()
	})
	response, err := server.Client().Get(server.URL + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	doc, err := jsonschema.UnmarshalJSON(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := &openAPI{t: t, server: server, token: o.Token, calls: map[string]call{}, schemas: jsonschema.NewCompiler(), seen: map[string]bool{}}
	if err := a.schemas.AddResource(documentURL, doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.(map[string]any)["paths"].(map[string]any) {
		for method, about := range methods.(map[string]any) {
			if method == "parameters" {
				continue
			}
			c := call{path: path, method: strings.ToUpper(method)}
			for status := range about.(map[string]any)["responses"].(map[string]any) {
				c.statuses = append(c.statuses, status)
			}
			a.calls[about.(map[string]any)["operationId"].(string)] = c
		}
	}
	return a
}

// request is what one call sends.
type request struct {
	path  map[string]string
	query url.Values
	body  any    // as JSON; a string is sent as it is
	kind  string // Content-Type; empty = JSON
	token string // empty = the right one
}

// do calls an operation, and checks that the document allows the status and describes the body.
func (a *openAPI) do(operation string, r request) (int, map[string]any) {
	a.t.Helper()
	c, ok := a.calls[operation]
	if !ok {
		a.t.Fatalf("the document has no operation %s", operation)
	}
	path := c.path
	for name, v := range r.path {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(v))
	}
	var body []byte
	switch v := r.body.(type) {
	case nil:
	case string:
		body = []byte(v)
	default:
		var err error
		if body, err = json.Marshal(v); err != nil {
			a.t.Fatal(err)
		}
	}
	status, header, answer := a.raw(c.method, path+"?"+r.query.Encode(), body, r)
	key := fmt.Sprint(status)
	if !slices.Contains(c.statuses, key) {
		a.t.Fatalf("%s answers %d, which the document does not name: %s", operation, status, answer)
	}
	a.seen[operation+" "+key] = true
	if got := header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
		a.t.Errorf("%s: Content-Type %q", operation, got)
	}
	pointer := fmt.Sprintf("%s#/paths/%s/%s/responses/%s/content/application~1json/schema", documentURL,
		url.PathEscape(strings.ReplaceAll(c.path, "/", "~1")), strings.ToLower(c.method), key)
	schema, err := a.schemas.Compile(pointer)
	if err != nil {
		a.t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(answer))
	if err != nil {
		a.t.Fatalf("%s: %s: %v", operation, answer, err)
	}
	if err := schema.Validate(value); err != nil {
		a.t.Errorf("%s: %s does not fit the document: %v", operation, answer, err)
	}
	object, _ := value.(map[string]any)
	return status, object
}

func (a *openAPI) raw(method, path string, body []byte, r request) (int, http.Header, []byte) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.server.URL+strings.TrimSuffix(path, "?"), bytes.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	kind := r.kind
	if kind == "" {
		kind = "application/json"
	}
	req.Header.Set("Content-Type", kind)
	switch {
	case r.token != "":
		req.Header.Set("Authorization", r.token)
	case a.token != "":
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	response, err := a.server.Client().Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(response.Body); err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, response.Header, answer.Bytes()
}

// want calls an operation and checks status and, for an error, its name.
func (a *openAPI) want(status int, name, operation string, r request) map[string]any {
	a.t.Helper()
	got, object := a.do(operation, r)
	if got != status || name != "" && object["name"] != name {
		a.t.Errorf("%s %+v: %d %v; want %d %s", operation, r, got, object, status, name)
	}
	return object
}
