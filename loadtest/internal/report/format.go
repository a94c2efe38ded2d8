package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// absent stands where there is no value.
const absent = "-"

// FormatDuration writes three significant digits and a unit, such as "1.23 ms".
func FormatDuration(d time.Duration) string { return FormatValue(d.Seconds(), "s") }

// FormatCount writes a number with a comma between thousands.
func FormatCount(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// FormatValue writes v in a unit with three significant digits: "bytes" as B, KiB, MiB or GiB, "s" as ns, µs, ms, s or
// min, any other unit as it is, after a number that is whole from 1,000 on. What is not a number is "-".
func FormatValue(v float64, unit string) string {
	if !finite(v) {
		return absent
	}
	s := scaleOf(math.Abs(v), unit)
	scaled := v / s.by
	out := significant(scaled)
	if math.Abs(scaled) >= 999.5 && math.Abs(scaled) < 1e15 {
		out = FormatCount(int64(math.Round(scaled)))
	}
	if s.name == "" {
		return out
	}
	return out + " " + s.name
}

// significant keeps three digits, without the zeros behind them.
func significant(v float64) string {
	if v == 0 {
		return "0"
	}
	places := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	out := strconv.FormatFloat(v, 'f', min(max(places, 0), 9), 64)
	if strings.Contains(out, ".") {
		out = strings.TrimRight(strings.TrimRight(out, "0"), ".")
	}
	return out
}

// scale is a unit that suits the size of a value: by of the base unit.
type scale struct {
	by   float64
	name string
}

// scaleOf picks the largest unit that is not above the value.
func scaleOf(v float64, unit string) scale {
	var scales []scale
	switch unit {
	case "bytes":
		scales = []scale{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}
	case "s":
		scales = []scale{{60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}
		if v < 600 {
			scales = scales[1:]
		}
		if v == 0 {
			return scale{1, "s"}
		}
	default:
		return scale{1, unit}
	}
	for _, s := range scales {
		if v >= s.by {
			return s
		}
	}
	return scales[len(scales)-1]
}

// figure is a cell that is set to the right: a number with what may stand around it.
var figure = regexp.MustCompile(`^(-|[<>~+-]?[0-9][0-9,.]*( ?(%|ns|µs|ms|s|min|B|KiB|MiB|GiB|/s))?)$`)

// figures tells which columns of a table hold figures alone.
func figures(columns int, rows [][]string) []bool {
	out := make([]bool, columns)
	for i := range out {
		seen, all := false, true
		for _, row := range rows {
			if i < len(row) && row[i] != absent && row[i] != "" {
				seen = true
				all = all && figure.MatchString(row[i])
			}
		}
		out[i] = seen && all
	}
	return out
}

// printable escapes what a terminal could take for a command, what breaks a line, and what is no UTF-8.
func printable(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			out.WriteRune(r)
		default:
			out.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
		i += size
	}
	return out.String()
}
