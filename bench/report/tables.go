package report

import (
	"fmt"
	"slices"
	"strconv"
)

// Tables of a run that hold anything, most important first.
func (r *Run) Tables() []Table {
	tables := []Table{r.marks(), r.throughput(false), r.throughput(true), r.ratios()}
	for _, aof := range []bool{false, true} {
		tables = append(tables, r.latency(aof))
	}
	tables = append(tables, r.cost(), r.raw())
	return slices.DeleteFunc(tables, func(t Table) bool { return len(t.Rows) == 0 })
}

func (r *Run) marks() Table {
	t := Table{
		Title:  "Marks",
		Note:   "What xstreamq sets itself to reach in every run, and whether this one did.",
		Header: []string{"mark", "wanted", "measured", "met"},
	}
	for _, m := range r.Marks() {
		t.Rows = append(t.Rows, []string{m.What, m.Wanted(), m.Measured(), m.Verdict()})
	}
	return t
}

func (r *Run) throughput(aof bool) Table {
	t := Table{
		Title:  "Messages per second, " + persistenceWords(aof),
		Header: []string{"system"},
	}
	for _, m := range Throughputs {
		t.Header = append(t.Header, string(m))
	}
	for _, s := range r.Systems {
		row := []string{s.Title}
		some := false
		for _, m := range Throughputs {
			found := r.Find(s.Name, m, aof)
			some = some || found != nil
			row = append(row, spread(found.Of(rateOf), short))
		}
		if some {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func persistenceWords(aof bool) string {
	if aof {
		return "AOF everysec"
	}
	return "AOF off"
}

// ratios of our first row to each of the others.
func (r *Run) ratios() Table {
	t := Table{
		Title:  "How many times as fast xstreamq is: AOF off / AOF everysec",
		Note:   "Ratios of the medians above; less than 1 means that the other is faster.",
		Header: []string{"beside"},
	}
	for _, m := range Throughputs {
		t.Header = append(t.Header, string(m))
	}
	for _, s := range r.Systems {
		if s.Kind == Ours || r.Find(s.Name, EndToEnd, false) == nil {
			continue
		}
		row := []string{s.Title}
		for _, m := range Throughputs {
			row = append(row, middle(r.ratio(m, s.Name, false), digits)+" / "+middle(r.ratio(m, s.Name, true), digits))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ratio of the medians of our and another system's rate, as one value or none.
func (r *Run) ratio(m Measure, other string, aof bool) []float64 {
	us, them := r.Find(oursName, m, aof), r.Find(other, m, aof)
	if us == nil || them == nil {
		return nil
	}
	return []float64{Median(us.Of(rateOf)) / Median(them.Of(rateOf))}
}

func (r *Run) latency(aof bool) Table {
	t := Table{
		Title:  "Latency in ms at fixed rates, p50 / p99 / p99.9, " + persistenceWords(aof),
		Header: []string{"system"},
	}
	for _, rate := range Rates {
		t.Header = append(t.Header, strconv.Itoa(rate)+"/s")
	}
	for _, s := range r.Systems {
		row := []string{s.Title}
		some := false
		for _, rate := range Rates {
			found := r.Find(s.Name, Latency(rate), aof)
			some = some || found != nil
			row = append(row, latencyCell(found))
		}
		if some {
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func latencyCell(r *Result) string {
	if r == nil {
		return nothing
	}
	if ok, _ := r.Sustained(); !ok {
		return "not sustained"
	}
	held := r.held()
	return fmt.Sprintf("%s / %s / %s", middle(held.Of(p50Of), digits), middle(held.Of(p99Of), digits), middle(held.Of(p999Of), digits))
}

func (r *Run) cost() Table {
	t := Table{
		Title: "What a message costs",
		Note: "Redis and client: microseconds of CPU per message, of all threads of the server, and of producer and worker together;\n" +
			"one microsecond is 0.1 s per 100,000 messages. RSS: peak of one worker process.",
		Header: []string{"system", "Redis, drain", "Redis, end to end", "with AOF", "client, end to end", "with AOF", "RSS, MiB"},
	}
	for _, s := range r.Systems {
		drain, off, aof := r.Find(s.Name, Drain1, false), r.Find(s.Name, EndToEnd, false), r.Find(s.Name, EndToEnd, true)
		if drain == nil && off == nil && aof == nil {
			continue
		}
		t.Rows = append(t.Rows, []string{
			s.Title, spread(drain.Of(redisCPUOf), digits), middle(off.Of(redisCPUOf), digits), middle(aof.Of(redisCPUOf), digits),
			spread(off.Of(clientCPUOf), digits), middle(aof.Of(clientCPUOf), digits), middle(r.rss(s.Name), digits),
		})
	}
	return t
}

// rss is the peak of a worker in the drain of one process and end to end, each round and both kinds of server.
func (r *Run) rss(system string) []float64 {
	var all []float64
	for _, m := range []Measure{Drain1, EndToEnd} {
		for _, aof := range []bool{false, true} {
			all = append(all, r.Find(system, m, aof).Of(rssOf)...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	peak := all[0]
	for _, v := range all {
		peak = max(peak, v)
	}
	return []float64{peak}
}

func (r *Run) raw() Table {
	t := Table{
		Title:  "What the server takes: redis-benchmark",
		Header: []string{"run", "XADD/s, AOF off", "Redis us per XADD", "XADD/s, AOF everysec", "Redis us per XADD"},
	}
	for _, s := range r.Systems {
		off, aof := r.Find(s.Name, RawXADD, false), r.Find(s.Name, RawXADD, true)
		if off == nil && aof == nil {
			continue
		}
		t.Rows = append(t.Rows, []string{
			s.Title, spread(off.Of(rateOf), short), middle(off.Of(redisCPUOf), digits), spread(aof.Of(rateOf), short), middle(aof.Of(redisCPUOf), digits),
		})
	}
	return t
}
