package report

import (
	"math"
	"testing"
)

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]int32, 100)
	for i := range hundred {
		hundred[i] = int32(i + 1)
	}
	for _, c := range []struct {
		sorted []int32
		p      float64
		want   float64
	}{
		{hundred, 0, 1}, {hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 0.999, 100}, {hundred, 1, 100},
		{[]int32{7}, 0.5, 7}, {[]int32{1, 9}, 0.5, 1}, {[]int32{1, 9}, 0.51, 9},
	} {
		if got := Percentile(c.sorted, c.p); got != c.want {
			t.Errorf("p%g of %d values: %g, want %g", c.p*100, len(c.sorted), got, c.want)
		}
	}
	if got := Percentile([]float64(nil), 0.5); !math.IsNaN(got) {
		t.Errorf("of nothing: %g, want NaN", got)
	}
}

func TestMedian(t *testing.T) {
	t.Parallel()
	values := []float64{9, 1, 5}
	if got := Median(values); got != 5 || values[0] != 9 {
		t.Errorf("of three: %g, leaving %v", got, values)
	}
	if got := Median([]float64{4, 1, 9, 2}); got != 3 {
		t.Errorf("of four: %g, want 3", got)
	}
	if got := Median(nil); !math.IsNaN(got) {
		t.Errorf("of nothing: %g, want NaN", got)
	}
}
