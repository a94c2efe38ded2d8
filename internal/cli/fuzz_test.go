package cli

import (
	"strings"
	"testing"
	"time"
)

// A condition is split at one =, so that nothing of it is lost or guessed.
func FuzzConditions(f *testing.F) {
	f.Add("tenant=a=b")
	f.Add(`$.a["x=\"y="].b=c`)
	f.Add(`$.a["=`)
	f.Add("=")
	f.Add("a=")
	f.Fuzz(func(t *testing.T, given string) {
		for flag, find := range map[string]func(string, byte) int{"--header": strings.IndexByte, "--json-path": endOfPath} {
			m, err := conditions(flag, []string{given}, find)
			if err != nil {
				continue
			}
			if len(m) != 1 {
				t.Fatalf("%s %q became %d conditions", flag, given, len(m))
			}
			for name, value := range m {
				if name == "" || name != given && name+"="+value != given {
					t.Errorf("%s %q became %q and %q", flag, given, name, value)
				}
			}
		}
	})
}

// The flags of a filter are refused, or mean what they say; no command line brings the program down.
func FuzzFilterFlags(f *testing.F) {
	f.Add("--reason=failed", "--error-regexp=^a|b", "--older-than=1d12h")
	f.Add("--error-regexp=(", "--header=a", "--json-path=$.a[0]=1")
	f.Add("--min-attempts=2", "--max-attempts=1", "--newer-than=7d")
	f.Add("--", "-x", "--reason")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		got, err := parseFilter(t, a, b, c)
		if err != nil {
			return
		}
		if got.OlderThan < 0 || got.NewerThan < 0 || got.MinAttempts < 0 || got.MaxAttempts < 0 {
			t.Errorf("%q %q %q: %+v", a, b, c, got)
		}
		if got.OlderThan > 0 && got.NewerThan > 0 && got.OlderThan >= got.NewerThan {
			t.Errorf("%q %q %q chooses nothing", a, b, c)
		}
		for _, r := range got.Reasons {
			if r == "" {
				t.Errorf("%q %q %q: an empty reason", a, b, c)
			}
		}
	})
}

// A span is above zero, and what it shows is read as the same.
func FuzzSpan(f *testing.F) {
	for _, s := range []string{"90s", "12h", "7d", "1d12h", "65535d", "65535d2562047h", "1d-5s", "-1s", "d", "1dd", "1.5d", "+1d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var s span
		if s.Set(text) != nil {
			return
		}
		var again span
		if s <= 0 || again.Set(s.String()) != nil || again != s {
			t.Errorf("%q is %v, and again %v", text, time.Duration(s), time.Duration(again))
		}
	})
}
