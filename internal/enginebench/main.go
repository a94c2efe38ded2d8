// Command enginebench measures the engine against a bare rueidis loop in the same run, on a Redis that it starts itself. Ratios are what
// counts: absolute figures are those of a noisy machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

func main() {
	n := flag.Int("n", 200_000, "messages to drain and to publish")
	rounds := flag.Int("rounds", 3, "rounds; the median ratio counts")
	only := flag.String("only", "", "run one measurement: drain, publish, batch, idle, reclaim, rsmq")
	check := flag.Bool("check", false, "exit 1 when a ratio misses its mark")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failed, err := run(ctx, *n, *rounds, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "enginebench:", err)
		os.Exit(1)
	}
	if failed > 0 && *check {
		fmt.Fprintf(os.Stderr, "enginebench: %d figures miss their mark\n", failed)
		os.Exit(1)
	}
}

// measurement is one figure and the mark it must meet.
type measurement struct {
	name, value, mark string
	ok                bool
}

func run(ctx context.Context, n, rounds int, only string) (failed int, err error) {
	server, err := redistest.NewServer(redistest.Options{})
	if err != nil {
		return 0, err
	}
	defer server.Close()
	b, err := newBench(server.URL(), n, rounds)
	if err != nil {
		return 0, err
	}
	defer b.close()
	fmt.Println(b.facts(ctx))

	t := table.NewWriter()
	t.SetOutputMirror(os.Stdout)
	t.AppendHeader(table.Row{"figure", "measured", "mark", ""})
	for _, part := range []struct {
		name string
		run  func(context.Context) ([]measurement, error)
	}{
		{"drain", b.drain}, {"publish", b.publish}, {"batch", b.batch}, {"idle", b.idle}, {"reclaim", b.reclaim}, {"rsmq", b.rsmq},
	} {
		if only != "" && only != part.name {
			continue
		}
		ms, err := part.run(ctx)
		if err != nil {
			return failed, fmt.Errorf("%s: %w", part.name, err)
		}
		for _, m := range ms {
			verdict := "ok"
			if !m.ok {
				verdict = "MISSED"
				failed++
			}
			t.AppendRow(table.Row{m.name, m.value, m.mark, verdict})
		}
	}
	t.Render()
	return failed, nil
}
