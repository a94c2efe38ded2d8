package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"regexp"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	// chartWidth and chartHeight make text of chartFont that is still read when a phone shows the picture.
	chartWidth  = 360
	chartHeight = 210
	chartFont   = 10
)

// palette tells lines apart on white, also for those who see fewer colours (Okabe and Ito). The ninth line starts over,
// dashed.
var palette = []color.RGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, {R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, {R: 0x00, G: 0x9e, B: 0x73, A: 0xff},
	{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, {R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, {R: 0xe6, G: 0x9f, B: 0x00, A: 0xff},
	{R: 0x44, G: 0x44, B: 0x44, A: 0xff}, {R: 0x8a, G: 0x6d, B: 0x3b, A: 0xff},
}

// chart is what a plot and a curve have in common: lines over an axis.
type chart struct {
	Title      string
	x, unit    string
	logX, logY bool
	marked     bool
	lines      []Line
}

// lineStyle of the i-th line.
func lineStyle(i int) draw.LineStyle {
	s := draw.LineStyle{Color: palette[i%len(palette)], Width: vg.Points(1.3)}
	if i/len(palette)%2 == 1 {
		s.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
	}
	return s
}

// spans returns the ranges of what can be drawn, and every x of it; ok is false when that is nothing.
func (c chart) spans() (x, y span, xs []float64, ok bool) {
	x, y = nothing, nothing
	for _, l := range c.lines {
		for _, piece := range pieces(l.Points, c.logX, c.logY) {
			for _, p := range piece {
				x = x.with(p.X)
				y = y.with(p.Y)
				xs = append(xs, p.X)
			}
		}
	}
	return x, y, xs, len(xs) > 0
}

// svg draws the chart as an element of an HTML page. It is empty when there is nothing to draw.
func (c chart) svg() (string, error) {
	x, y, xs, ok := c.spans()
	if !ok {
		return "", nil
	}
	p := plot.New()
	p.BackgroundColor = color.Transparent
	unit := c.axes(p, x, y, xs)
	grid := plotter.NewGrid()
	grid.Horizontal.Color = color.Gray{Y: 0xdd}
	grid.Vertical.Color = color.Gray{Y: 0xee}
	p.Add(grid)
	for i, l := range c.lines {
		for _, piece := range pieces(l.Points, c.logX, c.logY) {
			if err := c.draw(p, lineStyle(i), piece, unit.by); err != nil {
				return "", fmt.Errorf("plot %q, line %q: %w", c.Title, l.Name, err)
			}
		}
	}
	canvas := vgsvg.NewWith(vgsvg.UseWH(chartWidth, chartHeight))
	// The last label of the horizontal axis stands half beyond it.
	p.Draw(draw.Crop(draw.New(canvas), 0, -chartFont, 0, -chartFont/2))
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return "", fmt.Errorf("plot %q: %w", c.Title, err)
	}
	return inline(out.Bytes()), nil
}

// axes sets both axes and returns the scale of the vertical one.
func (c chart) axes(p *plot.Plot, x, y span, xs []float64) scale {
	unit := scaleOf(max(math.Abs(y.low), math.Abs(y.high)), c.unit)
	if c.logY {
		unit = scaleOf(math.Sqrt(y.low*y.high), c.unit)
	}
	p.X.Label.Text, p.Y.Label.Text = printable(c.x), printable(unit.name)
	var ticks []plot.Tick
	if c.logY {
		p.Y.Scale = plot.LogScale{}
		p.Y.Min, p.Y.Max, ticks = y.logarithmic(unit.by)
	} else {
		p.Y.Min, p.Y.Max, ticks = y.linear(unit.by)
	}
	for i := range ticks {
		// Keeps the label off the axis where the reader's font is wider than the one that was measured.
		ticks[i].Label = pad(ticks[i].Label)
	}
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)
	if c.logX {
		p.X.Scale = plot.LogScale{}
		_, _, ticks = x.logarithmic(1)
		if few, ok := steps(xs); ok {
			ticks = few
		}
		p.X.Min, p.X.Max = x.low/1.1, x.high*1.1
	} else {
		p.X.Min, p.X.Max, ticks = x.linear(1)
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	face := font.Font{Typeface: "Liberation", Variant: "Sans", Size: chartFont}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = face, face
		a.Label.Padding = vg.Points(2)
		a.Padding = 0
	}
	return unit
}

func pad(label string) string {
	if label == "" {
		return ""
	}
	return label + " "
}

// draw adds one unbroken piece of a line; a piece of one point is a dot.
func (c chart) draw(p *plot.Plot, style draw.LineStyle, piece []XY, by float64) error {
	points := make(plotter.XYs, len(piece))
	for i, point := range piece {
		points[i] = plotter.XY{X: point.X, Y: point.Y / by}
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.LineStyle = style
	p.Add(line)
	if c.marked || len(piece) == 1 {
		dots.Color = style.Color
		dots.Shape = draw.CircleGlyph{}
		dots.Radius = vg.Points(2.2)
		p.Add(dots)
	}
	return nil
}

// opening is the start tag of a drawing, which has a size of its own.
var opening = regexp.MustCompile(`(?s)^.*?<svg width="[^"]*" height="[^"]*"`)

// inline makes a drawing an element of a page: without the XML declaration, and as wide as its place.
func inline(svg []byte) string {
	return string(opening.ReplaceAll(svg, []byte(`<svg role="img"`)))
}
