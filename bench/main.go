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
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/xstreamq/xstreamq/bench/peer"
	"github.com/xstreamq/xstreamq/bench/report"
	"github.com/xstreamq/xstreamq/bench/rig"
)

// nodeEnv names a folder with the packages of node/package.json; `make bench-peers` has scripts/node.sh make one.
const nodeEnv = "XSTREAMQ_NODE_DIR"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if len(os.Args) > 1 && os.Args[1] == "child" {
		err = child(os.Args[2:])
	} else {
		err = run(ctx, os.Args[1:])
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// child ends when its input does, which is also what becomes of it when the parent is gone. It leaves ^C to the parent.
func child(args []string) error {
	if len(args) != 4 {
		return errors.New("child takes a system, a role, a URL and a number of callers")
	}
	callers, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	err = peer.Serve(context.Background(), args[0], args[1], args[2], callers, os.Stdin, os.Stdout)
	if err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(peer.Event{Kind: peer.Failed, Error: err.Error()}) // the parent reports it
	}
	return nil
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
	_ = result
	return nil
}

// figures are those of a file, or measured now.
func figures(ctx context.Context, f flags) (*report.Run, error) {
	if f.from == "" {
		r := rig.Rig{Plan: f.plan, NodeDir: os.Getenv(nodeEnv), Log: os.Stderr}
		return r.Run(ctx)
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
