package cli

import (
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

const (
	// gridRows are printed together: their columns are as wide as the widest cell among them, or before them.
	gridRows = 200
	// lastWidth is the least that is shown of the last column, however narrow the terminal is.
	lastWidth = 10
	// wrappedWidth is the same where the last column is wrapped: below that sentences are hard to read.
	wrappedWidth = 24
	// gap is between two columns.
	gap = 2
)

// grid prints an aligned table on a terminal, some rows at a time. The last column is cut to what fits, or wrapped.
type grid struct {
	app    *app
	header []string
	rows   [][]string
	widths []int  // of the columns, as far as seen
	number []bool // columns of numbers, which are aligned to the right
	begun  bool
	wraps  bool
}

func newGrid(a *app, header []string) *grid {
	g := &grid{app: a, header: make([]string, len(header)), widths: make([]int, len(header)), number: make([]bool, len(header))}
	for i, name := range header {
		g.header[i] = strings.ToUpper(name)
		g.widths[i] = text.StringWidth(name)
	}
	return g
}

func (g *grid) add(row []string) error {
	g.rows = append(g.rows, row)
	if len(g.rows) < gridRows {
		return nil
	}
	return g.flush()
}

// flush prints what has gathered. A table without rows has no header.
func (g *grid) flush() error {
	if len(g.rows) == 0 {
		return nil
	}
	g.measure()
	t := table.NewWriter()
	t.SetStyle(gridStyle())
	t.SetColumnConfigs(g.columns())
	t.SuppressTrailingSpaces()
	if !g.begun {
		t.AppendRow(g.heading())
	}
	for _, row := range g.rows {
		t.AppendRow(cells(row))
	}
	g.rows, g.begun = g.rows[:0], true
	_, err := io.WriteString(g.app.out, t.Render()+"\n")
	return err
}

// measure looks at the rows: how wide the columns are, and by the first rows which ones hold numbers.
func (g *grid) measure() {
	for i := range g.widths {
		numbers, others := 0, 0
		for _, row := range g.rows {
			g.widths[i] = max(g.widths[i], text.StringWidth(row[i]))
			switch {
			case row[i] == absent:
			case strings.Trim(row[i], "0123456789") == "":
				numbers++
			default:
				others++
			}
		}
		if !g.begun {
			g.number[i] = numbers > 0 && others == 0
		}
	}
}

func (g *grid) heading() table.Row {
	names := cells(g.header)
	if g.app.colors() {
		for i, name := range g.header {
			names[i] = text.EscapeStart + "1" + text.EscapeStop + name + text.EscapeReset
		}
	}
	return names
}

func cells(row []string) table.Row {
	out := make(table.Row, len(row))
	for i, cell := range row {
		out[i] = cell
	}
	return out
}

func (g *grid) columns() []table.ColumnConfig {
	configs := make([]table.ColumnConfig, len(g.widths))
	room := terminalWidth(g.app.out)
	for i, width := range g.widths {
		c := &configs[i]
		c.Number, c.WidthMin = i+1, width
		if g.number[i] {
			c.Align = text.AlignRight
		}
		if i == len(g.widths)-1 {
			c.WidthMax = max(room, lastWidth)
			c.WidthMaxEnforcer = func(cell string, most int) string { return text.Snip(cell, most, "…") }
			if g.wraps {
				c.WidthMax = max(room, wrappedWidth)
				c.WidthMaxEnforcer = text.WrapSoft
			}
			c.WidthMin = min(c.WidthMin, c.WidthMax)
		}
		room -= width + gap
	}
	return configs
}

func gridStyle() table.Style {
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft = ""
	style.Box.PaddingRight = strings.Repeat(" ", gap)
	return style
}

// terminalWidth is that of a terminal in columns, or 80.
func terminalWidth(stream any) int {
	if file, ok := fileOf(stream); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return 80
}
