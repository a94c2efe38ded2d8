package rsmq

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The recorded scenarios of the Node package: testdata/README.md says where they come from.

type vectorFile struct {
	Scenarios []scenario `json:"scenarios"`
}

type scenario struct {
	Name    string `json:"name"`
	Clients map[string]struct {
		NS       *string `json:"ns"`
		Realtime bool    `json:"realtime"`
	} `json:"clients"`
	IDs map[string]struct {
		TimePrefix string `json:"time_prefix"`
	} `json:"ids"`
	Steps []vectorStep `json:"steps"`
}

type vectorStep struct {
	Step  int `json:"step"`
	Clock struct {
		S  int64 `json:"s"`
		US int64 `json:"us"`
	} `json:"clock"`
	Op        string          `json:"op"`
	Client    string          `json:"client"`
	Args      json.RawMessage `json:"args"`
	NA        bool            `json:"typed_api_na"`
	Result    any             `json:"result"`
	Error     *Error          `json:"error"`
	Published []struct {
		Channel string `json:"channel"`
		Payload string `json:"payload"`
	} `json:"published"`
	State json.RawMessage `json:"state"`
}

// loadVectors reads the file that RSMQ_VECTORS names, else the copy in testdata.
func loadVectors(t *testing.T) vectorFile {
	t.Helper()
	name := os.Getenv("RSMQ_VECTORS")
	if name == "" {
		name = "testdata/rsmq-vectors.json"
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var f vectorFile
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&f); err != nil {
		t.Fatal(err)
	}
	if len(f.Scenarios) == 0 {
		t.Fatalf("%s holds no scenario", name)
	}
	return f
}

// expand turns the file's way to write a value into the value. ids are the ids that sends returned so far.
func expand(t *testing.T, v any, ids []string) any {
	t.Helper()
	object, ok := v.(map[string]any)
	if !ok || len(object) != 1 {
		return v
	}
	if pair, ok := object["$repeat"].([]any); ok {
		n, err := pair[1].(json.Number).Int64()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Repeat(pair[0].(string), int(n))
	}
	if n, ok := object["$id"].(json.Number); ok {
		i, err := n.Int64()
		if err != nil || int(i) > len(ids) {
			t.Fatalf("no id %s: %v", n, err)
		}
		return ids[i-1]
	}
	if text, ok := object["$base64"].(string); ok {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if _, ok := object["$js"]; ok {
		return jsValue{}
	}
	return v
}

// jsValue is an argument that only JavaScript has.
type jsValue struct{}

// digest stands for a long value.
func digest(s string) map[string]any {
	sum := sha256.Sum256([]byte(s))
	return map[string]any{"$len": len(s), "$sha256": hex.EncodeToString(sum[:])}
}

// masked puts the ids that were sent in the place of their names.
func masked(text string, ids []string) string {
	for i := len(ids); i > 0; i-- {
		text = strings.ReplaceAll(text, "<id"+decimal(int64(i))+">", ids[i-1])
	}
	return text
}

// untypable is how many steps of a scenario have arguments that a typed language cannot pass.
func untypable(s scenario) (n int) {
	for _, st := range s.Steps {
		if st.NA {
			n++
		}
	}
	return n
}
