package xstreamq

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The option tables of the README list every option, in the order of the code, with the default that the code gives it.
func TestDocumentedOptions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		heading string
		options any // with their defaults
	}{
		{"`SubscribeOptions`", SubscribeOptions{}.withDefaults()},
		{"`Config`", Config{}.withDefaults()},
	}
	for _, tt := range tests {
		_, table, found := strings.Cut(string(text), "\n"+tt.heading+",")
		if !found {
			t.Fatalf("the README has no table of %s", tt.heading)
		}
		_, table, _ = strings.Cut(table, "|---|---|---|\n")
		table, _, _ = strings.Cut(table, "\n\n")
		rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*?) \\|").FindAllStringSubmatch(table, -1)
		options := reflect.ValueOf(tt.options)
		if len(rows) != options.NumField() {
			t.Errorf("%s has %d fields, the table %d rows", tt.heading, options.NumField(), len(rows))
			continue
		}
		for i, row := range rows {
			name := options.Type().Field(i).Name
			if want := documentedDefault(name, options.Field(i).Interface()); row[1] != name || row[2] != want {
				t.Errorf("%s: the table says %s, %s; the code %s, %s", tt.heading, row[1], row[2], name, want)
			}
		}
	}
}

// documentedDefault is a default as a reader would write it.
func documentedDefault(name string, value any) string {
	switch name {
	case "Dedupe":
		return map[bool]string{true: "off"}[value == time.Duration(0)]
	case "Logger", "Observer": // set to something that does nothing
		return "none"
	case "ConsumerName":
		return "host and pid"
	case "MaxBodySize":
		return fmt.Sprintf("%d MiB", value.(int)>>20)
	case "Retain":
		return fmt.Sprint(int64(value.(time.Duration)))
	}
	if reflect.ValueOf(value).IsZero() && value != any(false) {
		return "none"
	}
	switch v := value.(type) {
	case time.Duration:
		return short(v)
	case StartFrom:
		return map[StartFrom]string{Beginning: "Beginning", Now: "Now"}[v]
	case Backoff:
		return fmt.Sprintf("%s, %v, %s", short(v.Initial), v.Multiplier, short(v.Max))
	}
	return fmt.Sprint(value)
}

// short is a duration without parts that are zero.
func short(d time.Duration) string {
	return strings.NewReplacer("m0s", "m", "h0m0s", "h").Replace(d.String())
}
