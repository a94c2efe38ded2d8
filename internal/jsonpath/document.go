package jsonpath

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// Document is a decoded JSON text, in which any number of paths can be looked up.
type Document struct{ root any }

// Decode reads a JSON text. ok is false when it is none, or is nested deeper than encoding/json goes.
func Decode(text []byte) (d Document, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // numbers stay as they were written
	if err := dec.Decode(&d.root); err != nil {
		return Document{}, false
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Document{}, false
	}
	return d, true
}

// Find returns the value that a path leads to: a string as it is, anything else as compact JSON, the names of objects in
// order. Of a name that an object has twice the last counts.
func (d Document) Find(p Path) (value string, found bool) {
	v := d.root
	for _, s := range p.steps {
		if v, found = s.into(v); !found {
			return "", false
		}
	}
	return text(v), true
}

func (s step) into(v any) (any, bool) {
	if s.index < 0 {
		object, _ := v.(map[string]any)
		v, ok := object[s.name]
		return v, ok
	}
	array, _ := v.([]any)
	if s.index >= len(array) {
		return nil, false
	}
	return array[s.index], true
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "" // never for what was decoded
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
