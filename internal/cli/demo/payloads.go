package demo

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/xstreamq/xstreamq/testdata"
)

// webhook is the body of a message: one event as GitHub delivers it.
type webhook struct {
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
}

// Validate implements xstreamq.Validator.
func (w webhook) Validate() error {
	if w.Event == "" || len(w.Payload) == 0 {
		return errors.New("a webhook needs an event and a payload")
	}
	return nil
}

// loadPayloads reads the payloads that are part of the program.
func loadPayloads() ([]webhook, error) {
	unpacked, err := gzip.NewReader(bytes.NewReader(testdata.GitHubWebhooks))
	if err != nil {
		return nil, fmt.Errorf("the embedded payloads: %w", err)
	}
	var events []webhook
	for decoder := json.NewDecoder(unpacked); ; {
		var w webhook
		err := decoder.Decode(&w)
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the embedded payloads, number %d: %w", len(events)+1, err)
		}
		events = append(events, w)
	}
}
