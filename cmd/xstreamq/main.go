// Command xstreamq is the command line of the queue: xstreamq help lists what it does.
package main

import (
	"os"

	"github.com/xstreamq/xstreamq/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
