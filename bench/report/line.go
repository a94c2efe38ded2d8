package report

import (
	"fmt"
	"strings"
)

// Line is one sample as a line of a log.
func Line(title string, m Measure, aof bool, s Sample) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-3s  %-24s %-28s ", persistence(aof), m, title)
	if s.Messages == 0 {
		return b.String() + s.NotSustained
	}
	fmt.Fprintf(&b, "%9.0f/s  redis %6.2f us/msg  client %6.2f us/msg", s.Rate, s.RedisCPU, s.ClientCPU)
	if s.P50 > 0 {
		fmt.Fprintf(&b, "  p50 %.2f p99 %.2f p99.9 %.2f ms", s.P50, s.P99, s.P999)
	}
	if s.WorkerRSS > 0 {
		fmt.Fprintf(&b, "  %3.0f MiB", s.WorkerRSS)
	}
	if s.NotSustained != "" {
		b.WriteString("  NOT SUSTAINED: " + s.NotSustained)
	}
	return b.String()
}

func persistence(aof bool) string {
	if aof {
		return "AOF"
	}
	return "off"
}
