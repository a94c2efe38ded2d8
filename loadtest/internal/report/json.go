package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes the report as one indented JSON object. Durations are nanoseconds, the seed is a string since it may not
// fit a double, and lists are never null.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r.withLists()); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	return nil
}

// withLists returns a copy whose lists are empty instead of nil.
func (r *Report) withLists() *Report {
	c := *r
	c.Settings, c.Checks, c.Counts, c.Latency = list(r.Settings), list(r.Checks), list(r.Counts), list(r.Latency)
	c.Plots, c.Curves, c.Tables = list(r.Plots), list(r.Curves), list(r.Tables)
	for i := range c.Plots {
		series := list(c.Plots[i].Series)
		for j := range series {
			series[j].Points = list(series[j].Points)
		}
		c.Plots[i].Series = series
	}
	for i := range c.Curves {
		lines := list(c.Curves[i].Lines)
		for j := range lines {
			lines[j].Points = list(lines[j].Points)
		}
		c.Curves[i].Lines = lines
	}
	for i := range c.Tables {
		rows := list(c.Tables[i].Rows)
		for j := range rows {
			rows[j] = list(rows[j])
		}
		c.Tables[i].Columns, c.Tables[i].Rows = list(c.Tables[i].Columns), rows
	}
	return &c
}

// list copies s, which may be nil, to a slice that is not.
func list[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// MarshalJSON writes the point as [seconds, value].
func (p Point) MarshalJSON() ([]byte, error) { return pair(p.At.Seconds(), p.V) }

// MarshalJSON writes the point as [x, y].
func (p XY) MarshalJSON() ([]byte, error) { return pair(p.X, p.Y) }

// pair puts null in the place of what JSON has no number for.
func pair(x, y float64) ([]byte, error) {
	var values [2]*float64
	for i, v := range []float64{x, y} {
		if finite(v) {
			values[i] = &v
		}
	}
	return json.Marshal(values)
}
