package report

import (
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Table is shown as text or as Markdown.
type Table struct {
	Title  string
	Note   string // how to read it; may be empty
	Header []string
	Rows   [][]string
}

func (t Table) writer() table.Writer {
	w := table.NewWriter()
	header := make(table.Row, len(t.Header))
	for i, cell := range t.Header {
		header[i] = cell
	}
	w.AppendHeader(header)
	for _, row := range t.Rows {
		cells := make(table.Row, len(row))
		for i, cell := range row {
			cells[i] = cell
		}
		w.AppendRow(cells)
	}
	w.Style().Format.Header = text.FormatDefault
	return w
}

// Text writes the table with lines around it.
func (t Table) Text(to io.Writer) error {
	_, err := io.WriteString(to, "\n"+t.Title+"\n"+t.writer().Render()+"\n")
	return err
}

// Markdown writes a section.
func (t Table) Markdown(to io.Writer) error {
	head := "### " + t.Title + "\n\n"
	if t.Note != "" {
		head += t.Note + "\n\n"
	}
	_, err := io.WriteString(to, head+t.writer().RenderMarkdown()+"\n")
	return err
}
