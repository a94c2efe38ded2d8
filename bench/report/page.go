package report

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// Lines between which a page is generated.
const (
	pageBegin = "<!-- figures: written by make bench-peers -->"
	pageEnd   = "<!-- end of the figures -->"
)

// Page replaces the generated part of a page.
func (r *Run) Page(page string) (string, error) {
	before, rest, ok1 := strings.Cut(page, pageBegin)
	_, after, ok2 := strings.Cut(rest, pageEnd)
	if !ok1 || !ok2 {
		return "", errors.New("the page lacks the lines between which figures go: " + pageBegin + " and " + pageEnd)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n\nMeasured on %s. Rounds: %d; phases of about %s at full speed and %s at a fixed rate; it took %s.\n\n",
		pageBegin, r.Date.Format("2006-01-02"), r.Rounds, r.Length, r.PaceFor, r.Took)
	if r.Rounds < 3 {
		b.WriteString("**A short run:** there are no medians and no spread in it. Take its figures as a first impression.\n\n")
	}
	if r.Busy != "" {
		fmt.Fprintf(&b, "**The machine was busy:** %s. All figures suffer from that, latencies most of all.\n\n", r.Busy)
	}
	for _, missing := range r.Missing {
		fmt.Fprintf(&b, "**Not measured:** %s.\n\n", missing)
	}
	for _, t := range r.Tables() {
		if err := t.Markdown(&b); err != nil {
			return "", err
		}
		b.WriteByte('\n')
	}
	b.WriteString("### Machine and servers\n\n")
	for _, fact := range r.Machine {
		writeItem(&b, fact)
	}
	b.WriteString("\n### Versions and settings\n\n")
	for _, s := range r.Systems {
		writeItem(&b, fmt.Sprintf("**%s** (%s): %s.", s.Title, s.Version, strings.ReplaceAll(s.Settings, "<128 bytes>", "BODY")))
	}
	b.WriteByte('\n')
	b.WriteString(pageEnd)
	return before + b.String() + after, nil
}

const pageWidth = 125

// writeItem breaks a list item into lines.
func writeItem(b *bytes.Buffer, item string) {
	line := "-"
	for word := range strings.FieldsSeq(item) {
		if len(line)+1+len(word) > pageWidth {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
