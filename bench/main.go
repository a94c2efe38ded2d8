// Command bench compares xstreamq with other queues on Redis: same machine, same run, same messages, each system in processes of its
// own, on a Redis that it starts itself. docs/benchmarks.md says what is measured and how to read it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xstreamq/xstreamq/bench/report"
	"github.com/xstreamq/xstreamq/bench/rig"
)

// nodeEnv names a folder with the packages of node/package.json; `make bench-peers` has scripts/node.sh make one.
const nodeEnv = "XSTREAMQ_NODE_DIR"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// flags of a run.
type flags struct {
	plan                     rig.Plan
	from, json, page, figure string
	check                    bool
}

func parse(args []string) (flags, error) {
	var f flags
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := set.Bool("quick", false, "one short round: under 6 minutes, for a first impression")
	rounds := set.Int("rounds", 0, "rounds; medians count (default 3, with --quick 1)")
	systems := set.String("systems", "", "only these, by name, separated by commas")
	phases := set.String("phases", "", "only these: raw, publish, drain, e2e, latency")
	set.StringVar(&f.from, "from", "", "measure nothing, read the figures from this JSON file")
	set.StringVar(&f.json, "json", "", "write all figures to this file")
	set.StringVar(&f.page, "markdown", "", "write the generated part of this page")
	set.StringVar(&f.figure, "svg", "", "draw the plot into this file")
	set.BoolVar(&f.check, "check", false, "exit 1 when a mark is missed")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	f.plan = rig.Full
	if *quick {
		f.plan = rig.Quick
	}
	if *rounds > 0 {
		f.plan.Rounds = *rounds
	}
	f.plan.Systems = list(*systems)
	f.plan.Phases = list(*phases)
	return f, nil
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func run(ctx context.Context, args []string) error {
	f, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	result, err := figures(ctx, f)
	if err != nil {
		return err
	}
	if result.Busy != "" {
		fmt.Fprintf(os.Stderr, "\nTHE MACHINE WAS BUSY: %s\n", result.Busy)
	}
	for _, missing := range result.Missing {
		fmt.Fprintf(os.Stderr, "\nNOT MEASURED: %s\n", missing)
	}
	for _, t := range result.Tables() {
		if err := t.Text(os.Stdout); err != nil {
			return err
		}
	}
	fmt.Printf("\nIt took %s.\n", result.Took)
	if err := write(f, result); err != nil {
		return err
	}
	if missed := missed(result); f.check && len(missed) > 0 {
		return fmt.Errorf("%d marks were missed: %s", len(missed), strings.Join(missed, "; "))
	}
	return nil
}

// write makes the files that the flags ask for.
func write(f flags, result *report.Run) error {
	if f.json != "" {
		text, err := json.MarshalIndent(result, "", "\t")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.json, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if f.page != "" {
		page, err := os.ReadFile(f.page)
		if err != nil {
			return err
		}
		text, err := result.Page(string(page))
		if err != nil {
			return fmt.Errorf("%s: %w", f.page, err)
		}
		if err := os.WriteFile(f.page, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if f.figure != "" {
		svg, err := result.SVG()
		if err != nil {
			return fmt.Errorf("draw the plot: %w", err)
		}
		return os.WriteFile(f.figure, svg, 0o644)
	}
	return nil
}

// missed are the marks that were measured and not met.
func missed(result *report.Run) []string {
	var names []string
	for _, m := range result.Marks() {
		if m.Known() && !m.Met() {
			names = append(names, m.What)
		}
	}
	return names
}

// figures are those of a file, or measured now.
func figures(ctx context.Context, f flags) (*report.Run, error) {
	if f.from == "" {
		return measure(ctx, f.plan)
	}
	text, err := os.ReadFile(f.from)
	if err != nil {
		return nil, err
	}
	var result report.Run
	if err := json.Unmarshal(text, &result); err != nil {
		return nil, fmt.Errorf("%s: %w", f.from, err)
	}
	return &result, nil
}

func measure(ctx context.Context, plan rig.Plan) (*report.Run, error) {
	dir, err := os.MkdirTemp("", "xstreamq-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	child := filepath.Join(dir, "child")
	build := exec.CommandContext(ctx, "go", "build", "-o", child, "./child")
	if output, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build ./child (is this the folder bench?): %w\n%s", err, output)
	}
	r := rig.Rig{Plan: plan, Child: []string{child}, NodeDir: os.Getenv(nodeEnv), Log: os.Stderr}
	return r.Run(ctx)
}
