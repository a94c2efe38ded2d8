package jsnumber

import (
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

// A number of JSON is read as JavaScript reads what it makes of it.
func TestParseJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"3e1": 30, "1.5E+2": 150, "25e-1": 2, "15": 15, "-1": -1, "-0": 0, "-0.5": 0, "1e20": math.MaxInt64, "1e21": 1, "1e-6": 0, "5e-7": 5, "0e9": 0,
		"9999999.9": 9999999,
	} {
		if got, ok := ParseJSON(text); !ok || got != want {
			t.Errorf("%s is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"1e400", "-1e400"} {
		if got, ok := ParseJSON(text); ok {
			t.Errorf("%s is %d; want none", text, got)
		}
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
