package report

import (
	"bytes"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/palette/brewer"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotWidth   = 30 * vg.Centimeter
	panelHeight = 11 * vg.Centimeter
	barWidth    = 3 * vg.Millimeter
	legendAt    = 22 * vg.Centimeter // from the left of a panel, where no bars are
)

// SVG draws the throughput of every system, without AOF above and with it below.
func (r *Run) SVG() ([]byte, error) {
	canvas := vgsvg.New(plotWidth, 2*panelHeight)
	tiles := draw.Tiles{Rows: 2, Cols: 1, PadX: vg.Centimeter, PadY: vg.Centimeter, PadTop: vg.Centimeter / 2, PadBottom: vg.Centimeter / 2}
	area := draw.New(canvas)
	area.SetColor(color.White) // for readers whose page is dark
	area.Fill(area.Rectangle.Path())
	for row, aof := range []bool{false, true} {
		p, err := r.panel(aof)
		if err != nil {
			return nil, err
		}
		p.Draw(tiles.At(area, 0, row))
	}
	var svg bytes.Buffer
	_, err := canvas.WriteTo(&svg)
	return svg.Bytes(), err
}

// panel has a group of bars per measure, and in it one per system.
func (r *Run) panel(aof bool) (*plot.Plot, error) {
	p := plot.New()
	p.Title.Text = "Messages per second, " + persistenceWords(aof) + " (median; whiskers: least and most)"
	p.Y.Label.Text = "thousands per second"
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, legendAt
	p.Legend.Padding = vg.Millimeter
	p.Add(plotter.NewGrid())
	var shown []System
	for _, s := range r.Systems {
		if slices.ContainsFunc(Throughputs, func(m Measure) bool { return r.Find(s.Name, m, aof) != nil }) {
			shown = append(shown, s)
		}
	}
	colors, err := colorsFor(len(shown))
	if err != nil {
		return nil, err
	}
	group := float64(len(shown) + 2)
	for i, s := range shown {
		if err := r.addSystem(p, s, aof, float64(i), group, colors[i]); err != nil {
			return nil, err
		}
	}
	p.Y.Max = 100 * math.Ceil(p.Y.Max/100)
	ticks := make(plot.ConstantTicks, len(Throughputs))
	for i, m := range Throughputs {
		ticks[i] = plot.Tick{Value: float64(i)*group + float64(len(shown)-1)/2, Label: string(m)}
	}
	p.X.Tick.Marker = ticks
	p.X.Tick.Length = 0
	p.X.Min, p.X.Max = -1, (float64(len(Throughputs))+1.5)*group // room for the legend
	return p, nil
}

func colorsFor(n int) ([]color.Color, error) {
	palette, err := brewer.GetPalette(brewer.TypeQualitative, "Paired", min(max(n, 3), 12))
	if err != nil {
		return nil, err
	}
	colors := palette.Colors()
	for len(colors) < n {
		colors = append(colors, color.Gray{Y: 128})
	}
	return colors, nil
}

// whiskers are points with their distances to the extremes.
type whiskers struct {
	plotter.XYs
	plotter.YErrors
}

func (r *Run) addSystem(p *plot.Plot, s System, aof bool, at, group float64, c color.Color) error {
	var marks whiskers
	for i, m := range Throughputs {
		found := r.Find(s.Name, m, aof)
		if found == nil {
			continue
		}
		rates := found.Of(rateOf)
		middle := Median(rates) / 1000
		x := float64(i)*group + at
		bar, err := plotter.NewBarChart(plotter.Values{middle}, barWidth)
		if err != nil {
			return err
		}
		bar.XMin = x
		bar.Color = c
		bar.LineStyle.Width = 0
		p.Add(bar)
		if len(marks.XYs) == 0 {
			p.Legend.Add(s.Title, bar)
		}
		marks.XYs = append(marks.XYs, plotter.XY{X: x, Y: middle})
		low, high := middle-slices.Min(rates)/1000, slices.Max(rates)/1000-middle
		marks.YErrors = append(marks.YErrors, struct{ Low, High float64 }{math.Max(low, 0), math.Max(high, 0)})
	}
	if r.Rounds < 2 || len(marks.XYs) == 0 {
		return nil
	}
	bars, err := plotter.NewYErrorBars(marks)
	if err != nil {
		return err
	}
	bars.CapWidth = barWidth / 2
	p.Add(bars)
	return nil
}
