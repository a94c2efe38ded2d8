package rig

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strconv"
	"strings"

	"github.com/xstreamq/xstreamq/bench/peer"
	"github.com/xstreamq/xstreamq/bench/report"
)

// rawRuns of redis-benchmark: what the server takes from a client that does nothing else.
func rawRuns() []System {
	return []System{
		{
			System: report.System{
				Name: "raw-1", Title: "redis-benchmark, 64 clients", Kind: report.Ceiling,
				Settings: "redis-benchmark -c 64 -P 1 XADD {bench} * body <128 bytes>",
			},
			speeds: speeds{publish: 60_000},
		},
		{
			System: report.System{
				Name: "raw-64", Title: "redis-benchmark, pipelined", Kind: report.Ceiling,
				Settings: "redis-benchmark -c 50 -P 64 XADD {bench} * body <128 bytes>",
			},
			speeds: speeds{publish: 450_000}, batch: true,
		},
	}
}

func (r *Rig) raw(ctx context.Context, srv *server) error {
	tool, err := exec.LookPath("redis-benchmark")
	if err != nil {
		if len(r.result.Missing) == 0 || r.result.Missing[len(r.result.Missing)-1] != noTool {
			r.result.Missing = append(r.result.Missing, noTool)
		}
		return nil
	}
	for _, s := range rawRuns() {
		err := r.phase(ctx, srv, s, report.RawXADD, func(ctx context.Context) (report.Sample, error) {
			return r.redisBenchmark(ctx, srv, tool, s)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

const noTool = "redis-benchmark: not on PATH; it comes with redis-server (Debian: redis-tools)"

func (r *Rig) redisBenchmark(ctx context.Context, srv *server, tool string, s System) (report.Sample, error) {
	if err := srv.flush(ctx); err != nil {
		return report.Sample{}, err
	}
	u, err := url.Parse(srv.URL())
	if err != nil {
		return report.Sample{}, err
	}
	clients, pipeline := "64", "1"
	if s.batch {
		clients, pipeline = "50", "64"
	}
	n := s.messages(report.Publish64, r.Plan.Length)
	m, err := begin(ctx, srv, n)
	if err != nil {
		return report.Sample{}, err
	}
	cmd := exec.CommandContext(ctx, tool, "-h", u.Hostname(), "-p", u.Port(), "-n", strconv.Itoa(n), "-c", clients, "-P", pipeline,
		"--csv", "XADD", ourStream, "*", "body", strings.Repeat("x", peer.BodySize))
	out, err := cmd.Output()
	if err != nil {
		return report.Sample{}, fmt.Errorf("redis-benchmark: %w", err)
	}
	sample, err := m.end(ctx, 0, 0)
	if err != nil {
		return report.Sample{}, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	sample.ClientCPU = m.perMessage(used)
	sample.Rate, err = parseBenchmark(string(out))
	return sample, err
}

// parseBenchmark finds the column rps of the last line.
func parseBenchmark(text string) (float64, error) {
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark --csv: %w", err)
	}
	if len(rows) < 2 || len(rows[0]) < 2 || rows[0][1] != "rps" {
		return 0, errors.New("redis-benchmark --csv: no column rps")
	}
	return strconv.ParseFloat(rows[len(rows)-1][1], 64)
}
