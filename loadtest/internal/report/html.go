package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html.tmpl
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// view is what the page shows.
type view struct {
	Command, Verdict, When string
	Held                   bool
	Sections               []grid
	Charts                 []picture
	Facts                  []grid
}

// grid is a table of the page.
type grid struct {
	Title   string
	Columns []cell
	Rows    [][]cell
}

type cell struct {
	Text   string
	Number bool
	Class  string
}

// picture is a drawn chart with its legend.
type picture struct {
	Title  string
	SVG    template.HTML
	Legend []legend
}

type legend struct {
	Name   string
	Color  template.CSS
	Dashed bool
}

// HTML writes the report as one page that loads nothing: style and pictures are in it.
func (r *Report) HTML(w io.Writer) error {
	v := view{Command: printable(r.Command), Verdict: r.verdict(), When: printable(r.when()), Held: r.Held}
	for _, s := range append([]section{r.checks(), r.latencies(), r.counts()}, r.tables()...) {
		v.Sections = appendGrid(v.Sections, s)
	}
	for _, s := range []section{r.settings(), r.machine()} {
		v.Facts = appendGrid(v.Facts, s)
	}
	charts := make([]chart, 0, len(r.Plots)+len(r.Curves))
	for _, c := range r.Curves {
		charts = append(charts, c.overX())
	}
	for _, p := range r.Plots {
		charts = append(charts, p.overTime())
	}
	for _, c := range charts {
		p, err := c.picture()
		if err != nil {
			return fmt.Errorf("write the report as HTML: %w", err)
		}
		v.Charts = append(v.Charts, p)
	}
	if err := page.Execute(w, v); err != nil {
		return fmt.Errorf("write the report as HTML: %w", err)
	}
	return nil
}

func (c chart) picture() (picture, error) {
	svg, err := c.svg()
	if err != nil {
		return picture{}, err
	}
	p := picture{Title: printable(c.Title), SVG: template.HTML(svg)}
	for i, l := range c.lines {
		color := palette[i%len(palette)]
		p.Legend = append(p.Legend, legend{
			Name:   printable(l.Name),
			Color:  template.CSS(fmt.Sprintf("#%02x%02x%02x", color.R, color.G, color.B)),
			Dashed: len(lineStyle(i).Dashes) > 0,
		})
	}
	return p, nil
}

// appendGrid adds a table, unless it has no rows.
func appendGrid(grids []grid, s section) []grid {
	if len(s.Rows) == 0 {
		return grids
	}
	number := figures(len(s.Columns), s.Rows)
	g := grid{Title: printable(s.Title)}
	for i, name := range s.Columns {
		g.Columns = append(g.Columns, cell{Text: printable(name), Number: number[i]})
	}
	for _, row := range s.Rows {
		var cells []cell
		for i, text := range row {
			c := cell{Text: printable(text), Number: i < len(number) && number[i]}
			if i == 0 && text == "BROKEN" {
				c.Class = "broken"
			}
			cells = append(cells, c)
		}
		g.Rows = append(g.Rows, cells)
	}
	return append(grids, g)
}
