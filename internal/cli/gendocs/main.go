// The gendocs command writes the reference of the command line: a Markdown file per command into the folder that it is given.
package main

import (
	"fmt"
	"os"

	"github.com/xstreamq/xstreamq/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendocs FOLDER")
		os.Exit(2)
	}
	if err := cli.WriteReference(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
