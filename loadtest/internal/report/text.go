package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// widestCell is where the text of a cell is wrapped.
const widestCell = 90

// section is a titled table, the form in which the text and the page show most of a report.
type section struct {
	Title   string
	Columns []string
	Rows    [][]string
}

// Text writes the report for a terminal or a log. Control characters in it are escaped.
func (r *Report) Text(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n%s\n", printable(r.Command), r.verdict(), printable(r.when()))
	sections := []section{r.checks(), r.latencies(), r.counts()}
	sections = append(sections, r.tables()...)
	sections = append(sections, r.plotted()...)
	sections = append(sections, r.settings(), r.machine())
	for _, s := range sections {
		s.text(&out)
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// verdict is the result in one word.
func (r *Report) verdict() string {
	if r.Held {
		return "HELD"
	}
	return "BROKEN"
}

func (r *Report) when() string {
	when := fmt.Sprintf("started %s, took %s", r.Started.UTC().Format("2006-01-02 15:04:05 UTC"), r.Took.Round(time.Millisecond))
	if r.Seed == 0 {
		return when
	}
	return fmt.Sprintf("%s, seed %d", when, r.Seed)
}

func (r *Report) checks() section {
	s := section{Title: "Checks", Columns: []string{"", "check", "want", "got"}}
	for _, c := range r.Checks {
		held := "ok"
		if !c.Held {
			held = "BROKEN"
		}
		s.Rows = append(s.Rows, []string{held, c.Name, c.Want, c.Got})
		for _, example := range c.Examples {
			s.Rows = append(s.Rows, []string{"", "  " + example, "", ""})
		}
	}
	return s
}

func (r *Report) latencies() section {
	s := section{Title: "Latency", Columns: []string{"", "n", "p50", "p90", "p99", "p99.9", "max"}}
	for _, l := range r.Latency {
		row := []string{l.Name, FormatCount(l.N)}
		for _, d := range []time.Duration{l.P50, l.P90, l.P99, l.P999, l.Max} {
			row = append(row, FormatDuration(d))
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func (r *Report) counts() section {
	s := section{Title: "Counts", Columns: []string{"", "n"}}
	for _, c := range r.Counts {
		s.Rows = append(s.Rows, []string{c.Name, FormatCount(c.N)})
	}
	return s
}

func (r *Report) tables() []section {
	out := make([]section, len(r.Tables))
	for i, t := range r.Tables {
		out[i] = section(t)
	}
	return out
}

func (r *Report) settings() section {
	s := section{Title: "Settings", Columns: []string{"", ""}}
	for _, one := range r.Settings {
		s.Rows = append(s.Rows, []string{one.Name, one.Value})
	}
	return s
}

func (r *Report) machine() section {
	m := r.Machine
	s := section{Title: "Machine", Columns: []string{"", ""}}
	cores, memory := "", ""
	if m.Cores > 0 {
		cores = strconv.Itoa(m.Cores)
	}
	if m.Memory > 0 {
		memory = FormatValue(float64(m.Memory), "bytes")
	}
	for _, row := range [][]string{
		{"CPU", m.CPU}, {"cores", cores}, {"memory", memory}, {"system", m.OS}, {"Go", m.Go}, {"server", m.Redis},
		{"persistence", m.Persistence},
	} {
		if row[1] != "" {
			s.Rows = append(s.Rows, row)
		}
	}
	return s
}

// plotted sums up each plot, since text has no picture of it.
func (r *Report) plotted() []section {
	var out []section
	for _, p := range r.Plots {
		title, unit := p.Title+" over time", p.Unit
		if unit != "" && unit != "s" && unit != "bytes" {
			title, unit = title+" ("+unit+")", ""
		}
		s := section{Title: title, Columns: []string{"", "first", "lowest", "highest", "last"}}
		for _, series := range p.Series {
			first, low, high, last := extremes(series.Points)
			row := []string{series.Name}
			for _, v := range []float64{first, low, high, last} {
				row = append(row, FormatValue(v, unit))
			}
			s.Rows = append(s.Rows, row)
		}
		out = append(out, s)
	}
	return out
}

// text writes the table under its title, and nothing when it has no rows.
func (s section) text(w io.Writer) {
	if len(s.Rows) == 0 {
		return
	}
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "  ", ""
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	configs := make([]table.ColumnConfig, len(s.Columns))
	for i, number := range figures(len(s.Columns), s.Rows) {
		configs[i] = table.ColumnConfig{Number: i + 1, WidthMax: widestCell, WidthMaxEnforcer: text.WrapSoft}
		if number {
			configs[i].Align, configs[i].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	t.SetColumnConfigs(configs)
	if strings.Join(s.Columns, "") != "" {
		t.AppendRow(safeRow(s.Columns))
	}
	for _, row := range s.Rows {
		t.AppendRow(safeRow(row))
	}
	fmt.Fprintf(w, "\n%s\n%s\n", printable(s.Title), t.Render())
}

func safeRow(cells []string) table.Row {
	row := make(table.Row, len(cells))
	for i, cell := range cells {
		row[i] = printable(cell)
	}
	return row
}
