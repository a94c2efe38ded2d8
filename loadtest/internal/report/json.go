package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
)

// JSON writes the report as one indented JSON object. Durations are nanoseconds, the seed is a string since it may not
// fit a double, and lists are never null.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	return nil
}

// MarshalJSON writes the point as [seconds, value].
func (p Point) MarshalJSON() ([]byte, error) { return pair(p.At.Seconds(), p.V) }

// MarshalJSON writes the point as [x, y].
func (p XY) MarshalJSON() ([]byte, error) { return pair(p.X, p.Y) }

// pair puts null in the place of what JSON has no number for.
func pair(x, y float64) ([]byte, error) {
	finite := func(v float64) *float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	return json.Marshal([2]*float64{finite(x), finite(y)})
}
