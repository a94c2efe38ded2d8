package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// small is the sample with few points, for the golden files.
func small() *Report {
	r := sample()
	for i := range r.Plots {
		for j := range r.Plots[i].Series {
			s := &r.Plots[i].Series[j]
			s.Points = s.Points[19:22]
		}
		r.Plots[i].Series = r.Plots[i].Series[:1]
	}
	r.Plots = append(r.Plots, Plot{Title: "nothing", Unit: "s"})
	return r
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(io.Writer) error{"report.txt": small().Text, "report.json": small().JSON} {
		var got bytes.Buffer
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got); -update writes it anew:\n%s", name, diff)
		}
	}
}

// pageOf returns the HTML form of a report, after a look at what holds for each one: it is well-formed, and loads nothing.
func pageOf(t *testing.T, r *Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := r.HTML(&out); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(bytes.NewReader(out.Bytes()))
	var elements []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		elements = append(elements, start.Name.Local)
		for _, a := range start.Attr {
			if name := strings.ToLower(a.Name.Local); name == "src" || name == "href" || strings.HasPrefix(name, "on") {
				t.Errorf("<%s> has the attribute %s=%q", start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
	for _, e := range elements {
		if slices.Contains([]string{"script", "link", "img", "image", "iframe", "object", "embed", "base", "form"}, strings.ToLower(e)) {
			t.Errorf("the page has a <%s>", e)
		}
	}
	if loads := regexp.MustCompile(`(?i)url\(|@import`).FindString(out.String()); loads != "" {
		t.Errorf("the style loads something: %s", loads)
	}
	return out.String()
}

func TestPage(t *testing.T) {
	t.Parallel()
	r := sample()
	html := pageOf(t, r)
	want := []string{
		"BROKEN", "seed 9223372036854775819", "1700000000000-1 ended twice", "640 µs", "killed within 20 ms of the end",
		"worker 4", "AOF everysec, no snapshots", ">MiB</text>", ">messages/s</text>", ">time (s)</text>", ">connections</text>",
		`name="viewport"`,
	}
	for _, s := range want {
		if !strings.Contains(html, s) {
			t.Errorf("the page has no %q", s)
		}
	}
	if got := strings.Count(html, "<svg "); got != len(r.Plots)+len(r.Curves) {
		t.Errorf("the page has %d pictures", got)
	}
}

// Whatever a message, a server or a flag holds, the three forms show it as text.
func TestHostileStrings(t *testing.T) {
	t.Parallel()
	const evil = "</style></svg><script src=\"http://x/\">alert('&')</script>\x1b[2J\x00\xff\u202e\n"
	r := &Report{
		Command: evil, Machine: Machine{CPU: evil, OS: evil, Go: evil, Redis: evil, Persistence: evil},
		Settings: []Setting{{evil, evil}}, Checks: []Check{{Name: evil, Want: evil, Got: evil, Examples: []string{evil}}},
		Counts: []Count{{evil, 1}}, Latency: []Latency{{Name: evil}},
		Plots:  []Plot{{Title: evil, Unit: evil, Series: []Series{{evil, []Point{{1, 1}, {2, 2}}}}}},
		Curves: []Curve{{Title: evil, X: evil, Unit: evil, Lines: []Line{{evil, []XY{{1, 1}}}}}},
		Tables: []Table{{Title: evil, Columns: []string{evil}, Rows: [][]string{{evil}, {evil, evil}}}},
	}
	pageOf(t, r)
	var text, object bytes.Buffer
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b\x00\u202e") || strings.Contains(text.String(), "\xff") {
		t.Errorf("control characters in the text: %q", text.String())
	}
	if err := r.JSON(&object); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(object.String(), "\x1b\x00") || !json.Valid(object.Bytes()) {
		t.Errorf("JSON: %q", object.String())
	}
}

func TestEmptyAndOdd(t *testing.T) {
	t.Parallel()
	odd := []Point{
		{0, math.NaN()}, {1, math.Inf(1)}, {2, math.Inf(-1)}, {3, math.MaxFloat64}, {4, -math.MaxFloat64}, {5, 5e-324}, {6, 0},
		{7, -3}, {-8, 1}, {math.MaxInt64, 2},
	}
	for name, r := range map[string]*Report{
		"zero": {},
		"no points": {
			Plots:  []Plot{{Title: "a"}, {Title: "b", Series: []Series{{Name: "s"}}}},
			Curves: []Curve{{Title: "c"}, {Title: "d", LogX: true, Log: true, Lines: []Line{{Name: "l"}}}},
			Tables: []Table{{Title: "t"}, {Title: "u", Columns: []string{"v"}}, {Title: "w", Rows: [][]string{nil, {"x"}}}},
		},
		"odd values": {
			Plots: []Plot{
				{Title: "a", Unit: "bytes", Series: []Series{{"s", odd}}}, {Title: "b", Unit: "s", Log: true, Series: []Series{{"s", odd}}},
				{Title: "nan", Series: []Series{{"s", odd[:1]}}}, {Title: "dot", Unit: "s", Series: []Series{{"s", odd[6:7]}}},
			},
			Curves: []Curve{{Title: "c", LogX: true, Log: true, Lines: []Line{{"l", []XY{{0, 1}, {1, 0}, {-1, 1}, {math.NaN(), 1}, {1, 1}}}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			html := pageOf(t, r)
			if pictures := strings.Count(html, "<svg "); name == "no points" && pictures > 0 || name == "odd values" && pictures != 4 {
				t.Errorf("%d pictures", pictures)
			}
			if missing := strings.Count(html, "No values."); missing != len(r.Plots)+len(r.Curves)-strings.Count(html, "<svg ") {
				t.Errorf("%d pictures are said to have no values", missing)
			}
			var out bytes.Buffer
			if err := errors.Join(r.Text(&out), r.JSON(&out)); err != nil {
				t.Fatal(err)
			}
			out.Reset()
			if err := r.JSON(&out); err != nil {
				t.Fatal(err)
			}
			// A gap is null; a list is not.
			if lists := regexp.MustCompile(`": null|\[\s*null\s*\]`).FindString(out.String()); lists != "" {
				t.Errorf("JSON has %q:\n%s", lists, out.String())
			}
		})
	}
	var out bytes.Buffer
	r := Report{Plots: []Plot{{Title: "gap", Series: []Series{{"s", []Point{{time.Second, 1}, {2 * time.Second, math.NaN()}}}}}}}
	if err := r.JSON(&out); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(out.String()), ""); !strings.Contains(got, "[[1,1],[2,null]]") {
		t.Errorf("points in JSON: %s", got)
	}
}

// A line is broken at a gap instead of drawn across it.
func TestGapsBreakALine(t *testing.T) {
	t.Parallel()
	at := func(values ...float64) []XY {
		var points []XY
		for i, v := range values {
			points = append(points, XY{float64(i + 1), v})
		}
		return points
	}
	got := pieces(at(1, 2, math.NaN(), 3, 0, 4), false, true)
	want := [][]XY{{{1, 1}, {2, 2}}, {{4, 3}}, {{6, 4}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// An error of the writer is passed on.
func TestWriteErrors(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	r := sample()
	for name, write := range map[string]func(io.Writer) error{"text": r.Text, "JSON": r.JSON, "HTML": r.HTML} {
		if err := write(failing{full}); !errors.Is(err, full) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
