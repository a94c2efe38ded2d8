package jsnumber

import (
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	numbers := map[string]int64{
		"15": 15, "30abc": 30, "1.9": 1, "\x2012\x20": 12, "1e3": 1, "0x10": 0, "+5": 5, "-0.5": 0, "-1.9": -1, "9999999.9": 9999999, "007": 7,
		"\u00a0\n3": 3, "\u3000\u1680\u202f\v3": 3, "99999999999999999999": math.MaxInt64, "-99999999999999999999": math.MinInt64,
	}
	for text, want := range numbers {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", " ", "abc", "-", "+", "--1", "+-1", ".5", "true", "NaN", "Infinity", "\u06615", "\u200b5", "\u00855"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is %d; want none", text, got)
		}
	}
}

// What Node prints for parseInt(JSON.parse(text)).
func TestFromJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[json.Number]int64{
		"15": 15, "3e1": 30, "3E+1": 30, "1.9": 1, "-1.9": -1, "0": 0, "-0": 0, "25e-1": 2, "1e-6": 0, "1e-7": 1, "0.0000005": 5, "1e20": math.MaxInt64,
		"1e21": 1, "65536.0": 65536, "9007199254740993": 9007199254740992,
	} {
		if got, ok := FromJSON(text); !ok || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, ok, want)
		}
	}
	if got, ok := FromJSON("1e999"); ok {
		t.Errorf("1e999 is %d", got)
	}
}

// whole is what parseInt(text, 10) reads, by the specification of the language: white space, a sign, digits.
var whole = regexp.MustCompile(`^[\t\n\v\f\r\p{Zs}\x{2028}\x{2029}\x{feff}]*([+-]?[0-9]+)`)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "15", " +5x", "-", "1e3", "\u00a05", "\xa05", "99999999999999999999", "-9223372036854775809"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := Parse(text)
		match := whole.FindStringSubmatch(text)
		if ok != (match != nil) {
			t.Fatalf("%q is %d, %v", text, got, ok)
		}
		if !ok {
			return
		}
		exact, valid := new(big.Int).SetString(match[1], 10)
		if !valid {
			t.Fatalf("%q is no number", match[1])
		}
		want := int64(math.MaxInt64)
		if exact.IsInt64() {
			want = exact.Int64()
		} else if exact.Sign() < 0 {
			want = math.MinInt64
		}
		if got != want {
			t.Fatalf("%q is %d, want %d", text, got, want)
		}
	})
}
