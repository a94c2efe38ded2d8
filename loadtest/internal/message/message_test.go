package message

import (
	"math"
	"testing"
	"time"
)

func TestBodyKeepsItsHeader(t *testing.T) {
	t.Parallel()
	sent := time.Unix(1796060001, 123456789)
	for _, size := range []int{0, MinBody, MinBody + 1, 128, 5000} {
		body := AppendBody(nil, 1<<40+7, sent, size)
		if len(body) != max(size, MinBody) {
			t.Errorf("size %d: %d bytes", size, len(body))
		}
		seq, at, ok := ParseBody(body)
		if !ok || seq != 1<<40+7 || !at.Equal(sent) {
			t.Errorf("size %d: got %d, %v, %v", size, seq, at, ok)
		}
	}
	whole := string(AppendBody(nil, 5, sent, 100))
	for _, foreign := range []string{"", "xqlt", "xqlt0123456789abcde", "abcd0123456789abcdef", "xqlt\xff123456789abcdef0123",
		whole[:99], whole[:MinBody], whole + "x", whole[:60] + "." + whole[61:], whole[:50] + whole[51:] + "a"} {
		if _, _, ok := ParseBody([]byte(foreign)); ok {
			t.Errorf("%q was taken for one of ours", foreign)
		}
	}
}

func TestPlanFailsAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	const n = 200_000
	for _, p := range []Plan{
		{Seed: 1, Rate: 0.25, MaxRetries: 3}, {Seed: 2, Rate: 0.05, MaxRetries: 1}, {Seed: 3, Rate: 0, MaxRetries: 1},
		{Seed: 4, Rate: 1, MaxRetries: 0}, {Seed: 5, Rate: 0.5, MaxRetries: 0},
	} {
		for group := range 2 {
			died := 0
			for seq := range n {
				if p.Dies(group, seq) {
					died++
				}
			}
			expected := n * p.DeathRate()
			sigma := math.Sqrt(expected * (1 - p.DeathRate()))
			if math.Abs(float64(died)-expected) > 4*sigma {
				t.Errorf("%+v, group %d: %d died, %.0f ± %.1f were expected", p, group, died, expected, sigma)
			}
		}
	}
}

func TestPlansAndGroupsDiffer(t *testing.T) {
	t.Parallel()
	base := Plan{Seed: 1, Rate: 0.5}
	other := Plan{Seed: 2, Rate: 0.5}
	seeds, groups, attempts := 0, 0, 0
	for seq := range 1000 {
		if base.Fails(0, seq, 0) != other.Fails(0, seq, 0) {
			seeds++
		}
		if base.Fails(0, seq, 0) != base.Fails(1, seq, 0) {
			groups++
		}
		if base.Fails(0, seq, 0) != base.Fails(0, seq, 1) {
			attempts++
		}
	}
	for name, n := range map[string]int{"seeds": seeds, "groups": groups, "attempts": attempts} {
		if n < 400 || n > 600 {
			t.Errorf("two %s differ in %d of 1000 messages, about 500 were expected", name, n)
		}
	}
}
