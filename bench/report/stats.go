package report

import (
	"math"
	"slices"
)

// Percentile returns the smallest value that at least the share p (0 to 1) of sorted is not above; NaN of nothing.
func Percentile[T int32 | float64](sorted []T, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := int(math.Ceil(p*float64(len(sorted)))) - 1
	return float64(sorted[min(max(at, 0), len(sorted)-1)])
}

// Median of an even number of values is the mean of the middle two; NaN of nothing.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
