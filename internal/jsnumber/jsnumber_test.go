package jsnumber

import (
	"math"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	numbers := map[string]int64{
		"15": 15, "30abc": 30, "1.9": 1, " 12 ": 12, "1e3": 1, "0x10": 0, "+5": 5, "-0.5": 0, "-1.9": -1, "9999999.9": 9999999, "007": 7,
		"\u00a0\n3": 3, "99999999999999999999": math.MaxInt64, "-99999999999999999999": math.MinInt64,
	}
	for text, want := range numbers {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", " ", "abc", "-", "+", "--1", "+-1", ".5", "true", "NaN", "Infinity", "\u06615"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is %d; want none", text, got)
		}
	}
}
