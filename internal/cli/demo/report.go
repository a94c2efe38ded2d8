package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/xstreamq/xstreamq"
)

// maxProblems is how many problems the text form lists.
const maxProblems = 20

// Report is the outcome of a demonstration.
type Report struct {
	// Payloads is how many real payloads were published.
	Payloads int `json:"payloads"`
	// Accounted: every message is, in every group.
	Accounted bool `json:"accounted"`
	// Seconds is how long it took, the clean-up left out.
	Seconds float64 `json:"seconds"`
	// Groups holds a row for each group.
	Groups []GroupReport `json:"groups"`
	// Problems says what is not accounted for.
	Problems []string `json:"problems,omitempty"`
}

// GroupReport counts messages of one group.
type GroupReport struct {
	Group string `json:"group"`
	// Published: payloads, the delayed message and the foreign entry. Handled and Dead add up to it.
	Published int `json:"published"`
	// Handled messages are those that a handler finished, however often they were delivered.
	Handled int `json:"handled"`
	// Retried counts failures that were followed by another attempt.
	Retried int `json:"retried"`
	// Recovered counts messages that came back because their worker died and the lease ran out.
	Recovered int `json:"recovered"`
	// Dead counts dead letters by reason.
	Dead map[xstreamq.Reason]int `json:"dead"`
	// Released counts messages that a stopping worker gave back.
	Released int `json:"released"`
}

// WriteJSON prints the report as one JSON object.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteText prints a table per group, and the verdict.
func (r *Report) WriteText(w io.Writer) error {
	for _, g := range r.Groups {
		if _, err := fmt.Fprintf(w, "\n%s\n", g.table()); err != nil {
			return err
		}
	}
	if r.Accounted {
		_, err := fmt.Fprintf(w, "\nevery message is accounted for: %d payloads, in %d groups, in %.1f s\n",
			r.Payloads, len(r.Groups), r.Seconds)
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nNOT every message is accounted for; %d problems:\n", len(r.Problems))
	for _, p := range r.Problems[:min(len(r.Problems), maxProblems)] {
		fmt.Fprintf(&text, "  %s\n", p)
	}
	if more := len(r.Problems) - maxProblems; more > 0 {
		fmt.Fprintf(&text, "  and %d more\n", more)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func (g GroupReport) table() string {
	head := table.Row{"published", "handled", "retried", "recovered\nfrom lost\nleases"}
	row := table.Row{g.Published, g.Handled, g.Retried, g.Recovered}
	for _, reason := range slices.Sorted(maps.Keys(g.Dead)) {
		head, row = append(head, "dead:\n"+string(reason)), append(row, g.Dead[reason])
	}
	head, row = append(head, "released"), append(row, g.Released)

	t := table.NewWriter()
	style := table.StyleDefault
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SetTitle("group " + g.Group)
	t.AppendHeader(head)
	t.AppendRow(row)
	return t.Render()
}
