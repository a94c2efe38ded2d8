package report

import (
	"fmt"
	"math"
	"slices"
)

const nothing = "-" // in place of a figure that was not measured

// short writes a number of messages: 207k, 8.1k, 950.
func short(v float64) string {
	switch {
	case v >= 10_000:
		return fmt.Sprintf("%.0fk", v/1000)
	case v >= 1000:
		return fmt.Sprintf("%.1fk", v/1000)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// digits writes a figure with about two significant digits: 0.27, 3.4, 58.
func digits(v float64) string {
	switch {
	case v < 1:
		return fmt.Sprintf("%.2f", v)
	case v < 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.0f", v)
	}
}

// precise writes a figure that is compared with a limit.
func precise(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// spread writes a median, and the extremes where there are several values.
func spread(values []float64, format func(float64) string) string {
	switch len(values) {
	case 0:
		return nothing
	case 1:
		return format(values[0])
	}
	return fmt.Sprintf("%s (%s-%s)", format(Median(values)), format(slices.Min(values)), format(slices.Max(values)))
}

func middle(values []float64, format func(float64) string) string {
	if m := Median(values); !math.IsNaN(m) {
		return format(m)
	}
	return nothing
}
