package report

import (
	"fmt"
	"math"
	"time"
)

// sample is a report that uses every field.
func sample() *Report {
	r := &Report{
		Command: "chaos", Started: time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC), Took: 62*time.Second + 345*time.Millisecond,
		Seed: 1<<63 + 11,
		Machine: Machine{
			CPU: "Example CPU @ 3.00GHz", Cores: 2, Memory: 8 << 30, OS: "linux debian 12", Go: "go1.26.8",
			Redis: "Redis 7.0.15", Persistence: "AOF everysec, no snapshots",
		},
		Settings: []Setting{{"--messages", "20000"}, {"--handler", "50ms"}},
		Checks: []Check{
			{Name: "every acknowledged message is handled or in one place", Held: true, Want: "20,000", Got: "20,000"},
			{Name: "each duplicate has a cause", Want: "0 unexplained", Got: "2 unexplained", Examples: []string{"1700000000000-1 ended twice"}},
		},
		Counts:  []Count{{"published", 20000}, {"kills", 17}},
		Latency: []Latency{{"end to end", 20000, 640 * time.Microsecond, 1200 * time.Microsecond, 9 * time.Millisecond, 31 * time.Millisecond, 2 * time.Second}},
		Tables: []Table{{
			Title: "Duplicates by cause", Columns: []string{"cause", "messages", "per kill"},
			Rows: [][]string{{"killed within 20 ms of the end", "3", "0.18"}, {"unexplained", "2", "0.12"}},
		}},
	}
	rss := Plot{Title: "memory", Unit: "bytes"}
	for w := range 4 {
		s := Series{Name: fmt.Sprintf("worker %d", w+1)}
		for i := range 60 {
			v := float64(18+w)*(1<<20) + 2e6*math.Sin(float64(i+9*w)/5)
			if i == 20+7*w {
				v = math.NaN()
			}
			s.Points = append(s.Points, Point{time.Duration(i) * time.Second, v})
		}
		rss.Series = append(rss.Series, s)
	}
	rate := Plot{Title: "handled", Unit: "messages/s", Series: []Series{{Name: "handled"}}}
	latency := Plot{Title: "latency", Unit: "s", Log: true, Series: []Series{{Name: "p50"}, {Name: "p99"}}}
	for i := range 60 {
		at := time.Duration(i) * time.Second
		rate.Series[0].Points = append(rate.Series[0].Points, Point{at, 2000 + 150*math.Cos(float64(i))})
		latency.Series[0].Points = append(latency.Series[0].Points, Point{at, 0.0006 + 0.0002*math.Cos(float64(i))})
		latency.Series[1].Points = append(latency.Series[1].Points, Point{at, 0.012 + 0.009*math.Sin(float64(i))})
	}
	r.Plots = []Plot{rss, rate, latency}
	r.Curves = []Curve{
		{Title: "publish rate by connections", X: "connections", LogX: true, Unit: "messages/s", Lines: []Line{
			{Name: "AOF off", Points: []XY{{1, 21000}, {4, 60000}, {16, 130000}, {64, 180000}, {256, 171000}}},
			{Name: "AOF everysec", Points: []XY{{1, 18000}, {4, 50000}, {16, 90000}, {64, 101000}, {256, 99000}}},
		}},
		{Title: "latency by rate", X: "messages/s", LogX: true, Unit: "s", Log: true, Lines: []Line{
			{Name: "p50", Points: []XY{{2000, .0005}, {4000, .0006}, {8000, .0007}, {16000, .001}, {24000, .004}, {28000, .02}, {32000, 1.2}}},
			{Name: "p99", Points: []XY{{2000, .001}, {4000, .002}, {8000, .003}, {16000, .006}, {24000, .02}, {28000, .2}, {32000, 2.2}}},
		}},
	}
	return r
}
