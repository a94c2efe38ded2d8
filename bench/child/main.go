// Command child is one producer or worker of the benchmark: a program of its own, so that a worker's memory holds nothing of what
// runs and reports it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/xstreamq/xstreamq/bench/peer"
)

func main() {
	signal.Ignore(syscall.SIGINT) // ^C is for the parent, with which the input of this program ends
	if err := peer.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}
