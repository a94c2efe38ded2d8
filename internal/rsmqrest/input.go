package rsmqrest

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xstreamq/xstreamq/internal/jsnumber"
	"github.com/xstreamq/xstreamq/rsmq"
)

// input is what a request says: in its path, its query and its body.
type input struct {
	queue, id string
	query     url.Values
	body      map[string]any // of JSON or of a form
}

// requestError is a request that cannot be read.
type requestError struct {
	status        int
	name, message string
}

func (e *requestError) Error() string { return e.message }

func (s *service) read(w http.ResponseWriter, r *http.Request) (*input, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &requestError{http.StatusBadRequest, "invalidQuery", "The query cannot be read"}
	}
	in := &input{queue: r.PathValue("qname"), id: r.PathValue("id"), query: query}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return in, nil
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.opts.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &requestError{http.StatusRequestEntityTooLarge, "bodyTooLarge", "The body is larger than this service takes"}
	case err != nil:
		return nil, &requestError{http.StatusBadRequest, "invalidBody", "The body cannot be read"}
	case len(raw) == 0:
		return in, nil
	}
	in.body, err = parse(r.Header.Get("Content-Type"), raw)
	return in, err
}

// parse reads a body of JSON or of a form. Without a type it is taken for JSON.
func parse(contentType string, raw []byte) (map[string]any, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if contentType == "" {
		kind, err = "application/json", nil
	}
	switch {
	case err != nil:
	case kind == "application/json":
		return parseJSON(raw)
	case kind == "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(raw))
		if err != nil {
			return nil, &requestError{http.StatusBadRequest, "invalidBody", "The form cannot be read"}
		}
		fields := map[string]any{}
		for name := range values {
			fields[name] = values.Get(name)
		}
		return fields, nil
	}
	return nil, &requestError{http.StatusUnsupportedMediaType, "unsupportedType", "The body must be JSON or a form"}
}

func parseJSON(raw []byte) (map[string]any, error) {
	if !utf8.Valid(raw) { // it would be decoded to other characters
		return nil, &requestError{http.StatusBadRequest, "invalidBody", "The body is not valid UTF-8"}
	}
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var fields map[string]any
	if err := decoder.Decode(&fields); err != nil || fields == nil {
		return nil, &requestError{http.StatusBadRequest, "invalidBody", "The body must be one JSON object"}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, &requestError{http.StatusBadRequest, "invalidBody", "The body must be one JSON object"}
	}
	return fields, nil
}

// number is a field of the body, or of the query where the body has none. One that is no number is far out of range, so that the
// client refuses it in its turn.
func (in *input) number(name string) (n int64, given bool) {
	var ok bool
	switch v := in.body[name].(type) {
	case nil:
		if !in.query.Has(name) {
			return 0, false
		}
		n, ok = jsnumber.Parse(in.query.Get(name))
	case string:
		n, ok = jsnumber.Parse(v)
	case json.Number:
		n, ok = jsnumber.FromJSON(v)
	}
	if !ok {
		return -1 << 40, true
	}
	return n, true
}

// seconds is a number as a time, which is kept from overflowing.
func (in *input) seconds(name string) *time.Duration {
	n, given := in.number(name)
	if !given {
		return nil
	}
	const most = int64(rsmq.MaxTime/time.Second) + 1
	return rsmq.Duration(time.Duration(max(-1, min(n, most))) * time.Second)
}

func (in *input) size(name string) *int {
	n, given := in.number(name)
	if !given {
		return nil
	}
	const bound = 1 << 30
	return rsmq.Size(int(max(-bound, min(n, bound))))
}
