package report

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"
)

func TestFormatValue(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "s", "0 s"}, {0.00000123, "s", "1.23 µs"}, {0.0123456, "s", "12.3 ms"}, {0.9999, "s", "1,000 ms"}, {1, "s", "1 s"},
		{599, "s", "599 s"}, {900, "s", "15 min"}, {-0.002, "s", "-2 ms"}, {5e-324, "s", "0 ns"},
		{0, "bytes", "0 B"}, {1023, "bytes", "1,023 B"}, {1 << 20, "bytes", "1 MiB"}, {1.5 * (1 << 30), "bytes", "1.5 GiB"},
		{0.25, "", "0.25"}, {12345.6, "messages/s", "12,346 messages/s"}, {999.9, "", "1,000"}, {-1234567, "", "-1,234,567"},
		{1e300, "", significant(1e300)}, {math.NaN(), "s", "-"}, {math.Inf(-1), "bytes", "-"},
	} {
		if got := FormatValue(row.v, row.unit); got != row.want {
			t.Errorf("%v %s: got %q, want %q", row.v, row.unit, got, row.want)
		}
	}
	if got := FormatCount(math.MinInt64); got != "-9,223,372,036,854,775,808" {
		t.Error(got)
	}
}

func TestFigures(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"1,234", "a", "12.5 ms", "-", "1700000000000-1"}, {"-", "1", "< 3 %", "", "2-0"}, {"7"}}
	if diff := cmp.Diff([]bool{true, false, false, false, false}, figures(5, rows)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]bool{true, true}, figures(2, [][]string{{"12.5 ms", "50%"}, {"~3/s", "<1 %"}})); diff != "" {
		t.Error(diff)
	}
}

// Percentiles are those of the sorted data, within the promised 0.1 %.
func TestPercentiles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 99, 100, 1000, 54321} {
		h, data := NewHistogram(), make([]time.Duration, n)
		for i := range data {
			data[i] = time.Duration(math.Exp(random.Float64()*14) * float64(10*time.Microsecond))
			h.Record(data[i])
		}
		slices.Sort(data)
		got := h.Latency("x")
		if got.N != int64(n) || h.N() != int64(n) || got.Max != data[n-1] || got.Name != "x" {
			t.Fatalf("n %d: %+v, want max %v", n, got, data[n-1])
		}
		for _, p := range []struct {
			percent float64
			got     time.Duration
		}{{50, got.P50}, {90, got.P90}, {99, got.P99}, {99.9, got.P999}} {
			// The product is rounded first: 99.9 % of 1000 is 999, not a trace more.
			rank := int(math.Ceil(math.Round(p.percent*float64(n)*1e6) / 1e8))
			want := data[rank-1]
			if off := math.Abs(float64(p.got-want)) / float64(want); off > 0.001 {
				t.Errorf("n %d: p%v is %v, want %v", n, p.percent, p.got, want)
			}
		}
	}
}

func TestHistogramBounds(t *testing.T) {
	t.Parallel()
	h := NewHistogram()
	if diff := cmp.Diff(Latency{Name: "empty"}, h.Latency("empty")); diff != "" {
		t.Error(diff)
	}
	h.Record(-time.Second)
	h.Record(0)
	h.Record(3 * time.Hour)
	got := h.Latency("odd")
	if got.N != 3 || got.P50 > time.Microsecond || got.Max != 3*time.Hour || got.P999 < 59*time.Minute {
		t.Errorf("%+v", got)
	}
	h.Reset()
	if diff := cmp.Diff(Latency{Name: "again"}, h.Latency("again")); diff != "" {
		t.Error(diff)
	}
}

// labels returns what stands at an axis.
func labels(ticks []plot.Tick) []string {
	var out []string
	for _, tick := range ticks {
		if tick.Label != "" {
			out = append(out, tick.Label)
		}
	}
	return out
}

func TestAxes(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		of   func() (low, high float64, ticks []plot.Tick)
		want []string
	}{
		{"linear", func() (float64, float64, []plot.Tick) { return span{12, 93}.linear(1) }, []string{"0", "20", "40", "60", "80", "100"}},
		{"below zero", func() (float64, float64, []plot.Tick) { return span{-3, 4}.linear(1) }, []string{"-4", "-2", "0", "2", "4"}},
		{"one value", func() (float64, float64, []plot.Tick) { return span{0, 0}.linear(1) }, []string{"0", "0.2", "0.4", "0.6", "0.8", "1"}},
		{"MiB", func() (float64, float64, []plot.Tick) { return span{0, 3 << 20}.linear(1 << 20) }, []string{"0", "1", "2", "3"}},
		{"few decades", func() (float64, float64, []plot.Tick) { return span{2000, 64000}.logarithmic(1) },
			[]string{"1000", "2000", "5000", "10k", "20k", "50k", "100k"}},
		{"many decades", func() (float64, float64, []plot.Tick) { return span{1e-6, 1e6}.logarithmic(1) },
			[]string{"1e-06", "0.0001", "0.01", "1", "100", "10k", "1M"}},
		{"exactly a decade", func() (float64, float64, []plot.Tick) { return span{10, 10}.logarithmic(1) }, []string{"10", "20", "50", "100"}},
	} {
		low, high, ticks := row.of()
		if diff := cmp.Diff(row.want, labels(ticks)); diff != "" || low >= high {
			t.Errorf("%s: from %v to %v\n%s", row.name, low, high, diff)
		}
	}
	few, ok := steps([]float64{256, 1, 4, 16, 64, 4})
	if diff := cmp.Diff([]string{"1", "4", "16", "64", "256"}, labels(few)); diff != "" || !ok {
		t.Error(diff)
	}
	for _, xs := range [][]float64{nil, {1000, 1010, 64000}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}} {
		if _, ok := steps(xs); ok {
			t.Errorf("labels for all of %v", xs)
		}
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	m := ThisMachine(t.Context())
	if m.Cores < 1 || m.Memory < 1<<26 || m.OS == "" || m.Go == "" {
		t.Errorf("%+v", m)
	}
	for _, row := range []struct {
		info                string
		config              map[string]string
		server, persistence string
	}{
		{"# Server\r\nredis_version:7.0.15\r\n", map[string]string{"appendonly": "yes", "appendfsync": "everysec", "save": ""},
			"Redis 7.0.15", "AOF everysec, no snapshots"},
		{"redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n", map[string]string{"appendonly": "no", "save": "3600 1"},
			"Valkey 8.0.1", "AOF off, snapshots 3600 1"},
		{"redis_version:7.2.4\r\nserver_name:x", nil, "Redis 7.2.4", "AOF unknown, snapshots unknown"},
		{"", nil, "", "AOF unknown, snapshots unknown"},
	} {
		var got Machine
		got.Server(row.info, row.config)
		if diff := cmp.Diff(Machine{Redis: row.server, Persistence: row.persistence}, got); diff != "" {
			t.Errorf("%q: %s", row.info, diff)
		}
	}
}
