package jsonpath

import (
	"fmt"
	"strings"
	"testing"
)

const order = ` { "id": 7, "big": 12345678901234567890123, "price": 1.50, "exp": 1e2, "note": "a \u00e9 <b>&", "none": null, "yes": true,
	"lines": [ {"sku": "x", "qty": 2}, {"sku": "y", "tags": ["p", "q"]} ], "a.b": {"c d": 1, "": 2, "\"": 3, "]": 4, "$ref": 5},
	"twice": 1, "twice": 2, "e": {}, "z": [], "deep": {"y": 1, "x": [1, 2 , 3]}, "caf\u00e9": 6, "2": "two" } `

func TestFind(t *testing.T) {
	t.Parallel()
	cases := []struct{ path, want string }{
		{"$.id", "7"},
		{"id", "7"},
		{".id", "7"},
		{`$["id"]`, "7"},
		{`["id"]`, "7"},
		{"$.big", "12345678901234567890123"},
		{"$.price", "1.50"},
		{"$.exp", "1e2"},
		{"$.note", "a \u00e9 <b>&"},
		{"$.none", "null"},
		{"$.yes", "true"},
		{"$.lines[0].sku", "x"},
		{"lines[1].tags[1]", "q"},
		{"$.lines[1]", `{"sku":"y","tags":["p","q"]}`},
		{`$["lines"][0]["qty"]`, "2"},
		{`$["a.b"]["c d"]`, "1"},
		{`$["a.b"].c d`, "1"},
		{`$["a.b"][""]`, "2"},
		{`$["a.b"]["\""]`, "3"},
		{`$["a.b"]["]"]`, "4"},
		{`$["a.b"].$ref`, "5"},
		{`$["a.b"].]`, "4"},
		{"$.twice", "2"},
		{"$.e", "{}"},
		{"$.z", "[]"},
		{"$.deep", `{"x":[1,2,3],"y":1}`},
		{"caf\u00e9", "6"},
		{`["caf\u00e9"]`, "6"},
		{"2", "two"},
	}
	d, ok := Decode([]byte(order))
	if !ok {
		t.Fatal("not decoded")
	}
	for _, c := range cases {
		p, err := Parse(c.path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, found := d.Find(p); !found || got != c.want {
			t.Errorf("%s is %q, %v, want %q", c.path, got, found, c.want)
		}
	}
	for _, path := range []string{
		"nothing", "$.id.x", "$.id[0]", "$.lines.sku", "$.lines[2]", "$.lines[2147483647]", "$.none.x", "$.note[0]", "$.z[0]", "$[0]", `$["0"]`, "$.2.x",
	} {
		p, err := Parse(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, found := d.Find(p); found {
			t.Errorf("%s leads to %q", path, got)
		}
	}
}

func TestWholeDocument(t *testing.T) {
	t.Parallel()
	root, err := Parse("$")
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{"1.0": "1.0", `"x"`: "x", " null ": "null", "[1, 2]": "[1,2]", "\n{}\n": "{}", "false": "false"} {
		d, ok := Decode([]byte(body))
		if got, found := d.Find(root); !ok || !found || got != want {
			t.Errorf("%q is %q, %v", body, got, found)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		"", " ", "x", "{", `{"a":1}}`, `{"a":1} 2`, "1 2", `{"a":1},`, "\xff", "\x00", `"a`, "{'a':1}", "NaN", "01", strings.Repeat("[", 1_000_000),
		strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
	} {
		if d, ok := Decode([]byte(body)); ok || d.root != nil {
			t.Errorf("%.40q is decoded", body)
		}
	}
	if _, ok := Decode(nil); ok {
		t.Error("nothing is decoded")
	}
}

func TestDeepPath(t *testing.T) {
	t.Parallel()
	const deep = 9000
	d, ok := Decode([]byte(strings.Repeat("[", deep) + "1" + strings.Repeat("]", deep)))
	p, err := Parse(strings.Repeat("[0]", deep))
	if got, found := d.Find(p); !ok || err != nil || got != "1" || !found {
		t.Errorf("%v, %v, %q, %v", ok, err, got, found)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"":                        "character 1: it is empty",
		"$.":                      "character 2: a name is missing",
		"$..a":                    "character 2: a name is missing",
		".":                       "character 1: a name is missing",
		"a.":                      "character 2: a name is missing",
		"a..b":                    "character 2: a name is missing",
		"a.[0]":                   "character 2: a name is missing",
		"$a":                      "character 2: want .name",
		"$$":                      "character 2: want .name",
		"$ .a":                    "character 2: want .name",
		"a[0]b":                   "character 5: want .name",
		"a[":                      "character 2: want [index]",
		"a[]":                     "character 2: want [index]",
		"a[1":                     "character 2: want [index]",
		"a[-1]":                   "character 2: want [index]",
		"a[+1]":                   "character 2: want [index]",
		"a[1.0]":                  "character 2: want [index]",
		"a[ 1]":                   "character 2: want [index]",
		"a[*]":                    "character 2: want [index]",
		"a['b']":                  "character 2: want [index]",
		"a[b]":                    "character 2: want [index]",
		`a["b]`:                   "does not end",
		`a["b"`:                   "does not end",
		`a["b"x]`:                 "does not end",
		`a["\"]`:                  "does not end",
		`a["\`:                    "does not end",
		`a["\x"]`:                 "no JSON string",
		"a[\"\n\"]":               "no JSON string",
		"a[99999999999999999999]": "want [index]",
		"a[2147483648]":           "want [index]",
	}
	for path, want := range cases {
		if _, err := Parse(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", path, err, want)
		}
	}
	if _, err := Parse("$." + strings.Repeat(".", 1<<20)); err == nil || len(err.Error()) > 400 {
		t.Errorf("the error about a long path: %.500v", err)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("$.lines[0].sku", order)
	f.Add(`["a.b"]["\""]`, order)
	f.Add("$[0][0]", "[[1e400]]")
	f.Add(".", "{")
	f.Fuzz(func(t *testing.T, path, body string) {
		d, ok := Decode([]byte(body))
		p, err := Parse(path)
		if err != nil {
			return
		}
		value, found := d.Find(p)
		if found && !ok && len(p.steps) > 0 {
			t.Errorf("%q leads to %q in %q, which is not JSON", path, value, body)
		}
		if !found && value != "" {
			t.Errorf("%q is not found and %q", path, value)
		}
	})
}

// What is in a document by name is found by that name.
func FuzzName(f *testing.F) {
	f.Add("a b")
	f.Add(`\"]`)
	f.Fuzz(func(t *testing.T, name string) {
		quoted := text(map[string]any{name: 1})
		d, ok := Decode([]byte(quoted))
		p, err := Parse(fmt.Sprintf("$[%s]", strings.TrimSuffix(strings.TrimPrefix(quoted, "{"), ":1}")))
		if got, found := d.Find(p); !ok || err != nil || !found || got != "1" {
			t.Errorf("%q: %v, %v, %q, %v", name, ok, err, got, found)
		}
	})
}
