package wire

import (
	"math"
	"testing"
)

func TestParseID(t *testing.T) {
	t.Parallel()
	good := map[string]ID{
		"0-0":              {},
		"1526919030474-55": {1526919030474, 55},
		"18446744073709551615-18446744073709551615": {math.MaxUint64, math.MaxUint64},
	}
	for s, want := range good {
		if got, ok := ParseID(s); !ok || got != want {
			t.Errorf("ParseID(%q) = %v, %v", s, got, ok)
		}
		if want.String() != s {
			t.Errorf("%v reads %q", want, want.String())
		}
	}
	for _, s := range []string{
		"", "-", "1", "1-", "-1", "1-2-3", "a-1", "1-a", "+1-1", "1-+1", " 1-1", "1-1 ", "1_0-1", "0x1-1", "18446744073709551616-0",
		"0-18446744073709551616", "d1-ff",
	} {
		if got, ok := ParseID(s); ok {
			t.Errorf("ParseID(%q) = %v", s, got)
		}
	}
}

func TestIDOrder(t *testing.T) {
	t.Parallel()
	ascending := []ID{
		{0, 0}, {0, 1}, {0, math.MaxUint64}, {1, 0}, {9, 5}, {10, 0}, {math.MaxUint64 - 1, math.MaxUint64}, {math.MaxUint64, 0},
		{math.MaxUint64, math.MaxUint64},
	}
	for i, a := range ascending {
		for j, b := range ascending {
			if a.Less(b) != (i < j) {
				t.Errorf("%v.Less(%v) = %v", a, b, a.Less(b))
			}
		}
	}
}

func TestNextID(t *testing.T) {
	t.Parallel()
	next := map[ID]ID{
		{0, 0}:                           {0, 1},
		{5, 7}:                           {5, 8},
		{5, math.MaxUint64}:              {6, 0},
		{math.MaxUint64, 5}:              {math.MaxUint64, 6},
		{math.MaxUint64, math.MaxUint64}: {math.MaxUint64, math.MaxUint64}, // nothing follows; never back to the start
	}
	for id, want := range next {
		if got := id.Next(); got != want {
			t.Errorf("%v is followed by %v, want %v", id, got, want)
		}
	}
}
