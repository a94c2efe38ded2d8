// Package report holds what a run of the load tests found, and writes it as text, as JSON and as an HTML page that
// needs no network. It also has the progress line of a run and the sampler of the series that are plotted.
package report

import "time"

// Report is the result of one run. The zero value of any field is left out of the text and the page.
type Report struct {
	// Command is what was run, such as "chaos".
	Command string `json:"command"`
	// Started is when the run began.
	Started time.Time `json:"started"`
	// Took is how long the run was, drain and checks included.
	Took time.Duration `json:"took_ns"`
	// Seed repeats the run's random choices. 0: it made none.
	Seed uint64 `json:"seed,string"`
	// Machine is where it ran.
	Machine Machine `json:"machine"`
	// Settings are the flags and what was computed from them, in the order of the report.
	Settings []Setting `json:"settings"`
	// Held is the verdict: all that the run promises to check was true.
	Held bool `json:"held"`
	// Checks are the parts of the verdict.
	Checks []Check `json:"checks"`
	// Counts are plain figures, in the order of the report.
	Counts []Count `json:"counts"`
	// Latency are distributions of durations.
	Latency []Latency `json:"latency"`
	// Plots are values over the time of the run.
	Plots []Plot `json:"plots"`
	// Curves are values over something else than time, such as the number of connections.
	Curves []Curve `json:"curves"`
	// Tables are all other figures.
	Tables []Table `json:"tables"`
}

// Machine says where a run took place. Empty fields are unknown.
type Machine struct {
	// CPU is the model of the processor.
	CPU string `json:"cpu"`
	// Cores is how many the process may use.
	Cores int `json:"cores"`
	// Memory is that of the machine, in bytes.
	Memory uint64 `json:"memory_bytes"`
	// OS is the operating system and its version.
	OS string `json:"os"`
	// Go is the version of the toolchain.
	Go string `json:"go"`
	// Redis is the server and its version, such as "Redis 7.0.15".
	Redis string `json:"redis"`
	// Persistence is what the server writes to disk, such as "AOF everysec, no snapshots".
	Persistence string `json:"persistence"`
}

// Setting is a flag, or a value computed from flags.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Check is one part of the verdict.
type Check struct {
	// Name says what was promised.
	Name string `json:"name"`
	// Held says whether it was so.
	Held bool `json:"held"`
	// Want and Got are the figures behind Held.
	Want string `json:"want"`
	Got  string `json:"got"`
	// Examples name a few offenders, or what is worth a look although it held.
	Examples []string `json:"examples,omitempty"`
}

// Count is one figure.
type Count struct {
	Name string `json:"name"`
	N    int64  `json:"n"`
}

// Latency is the distribution of a duration; [Histogram.Latency] makes one.
type Latency struct {
	Name string        `json:"name"`
	N    int64         `json:"n"`
	P50  time.Duration `json:"p50_ns"`
	P90  time.Duration `json:"p90_ns"`
	P99  time.Duration `json:"p99_ns"`
	P999 time.Duration `json:"p999_ns"`
	Max  time.Duration `json:"max_ns"`
}

// Plot is a picture of series over the time of the run.
type Plot struct {
	Title string `json:"title"`
	// Unit is that of the values: "bytes" is written as KiB, MiB and so on, any other stands as it is.
	Unit string `json:"unit"`
	// Log draws the values on a logarithmic axis, where those below or at zero are left out.
	Log    bool     `json:"log,omitempty"`
	Series []Series `json:"series"`
}

// Series is one line of a [Plot].
type Series struct {
	Name   string  `json:"name"`
	Points []Point `json:"points"`
}

// Point is a value at a time since the start of the run. One that is not a number is a gap in its line. In JSON it is
// the pair of seconds and value, and a gap's value is null.
type Point struct {
	At time.Duration
	V  float64
}

// Curve is a picture of lines over something else than time.
type Curve struct {
	Title string `json:"title"`
	// X names what lies on the horizontal axis, with its unit.
	X string `json:"x"`
	// LogX draws the horizontal axis logarithmically.
	LogX bool `json:"log_x,omitempty"`
	// Unit is that of the values, as in [Plot].
	Unit string `json:"unit"`
	// Log draws the values on a logarithmic axis.
	Log   bool   `json:"log,omitempty"`
	Lines []Line `json:"lines"`
}

// Line is one line of a [Curve].
type Line struct {
	Name   string `json:"name"`
	Points []XY   `json:"points"`
}

// XY is a point of a [Line], in JSON the pair of both. One that is not a number is a gap.
type XY struct{ X, Y float64 }

// Table is rows of cells under named columns. Columns whose cells are figures are set to the right.
type Table struct {
	Title   string     `json:"title"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
}
