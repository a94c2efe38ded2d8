package cli

import (
	"encoding/base64"
	"unicode/utf8"
)

// payload is what a message carries, for --json: exact, as strings where they are UTF-8, else in base64 under a name that says so.
type payload struct {
	Body         *string           `json:"body,omitempty"`
	BodyBase64   *[]byte           `json:"body_base64,omitempty"`
	Header       map[string]string `json:"header,omitempty"`
	HeaderBase64 map[string]string `json:"header_base64,omitempty"` // names and values
	Error        string            `json:"error,omitempty"`
	ErrorBase64  []byte            `json:"error_base64,omitempty"`
}

// newPayload takes a message apart. A nil body is one that is not there.
func newPayload(body []byte, header map[string]string, err string) payload {
	var p payload
	if text := string(body); body != nil && utf8.ValidString(text) {
		p.Body = &text
	} else if body != nil {
		p.BodyBase64 = &body
	}
	for name, value := range header {
		if utf8.ValidString(name) && utf8.ValidString(value) {
			put(&p.Header, name, value)
		} else {
			put(&p.HeaderBase64, base64.StdEncoding.EncodeToString([]byte(name)), base64.StdEncoding.EncodeToString([]byte(value)))
		}
	}
	if utf8.ValidString(err) {
		p.Error = err
	} else {
		p.ErrorBase64 = []byte(err)
	}
	return p
}

func put(m *map[string]string, name, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[name] = value
}
