// The cmd command runs the script generator; package luagen has the script format.
//
//	//go:generate go run ./internal/luagen/cmd -lua lua -out lua_gen.go -package xstreamq
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/xstreamq/xstreamq/internal/luagen"
)

func main() {
	var cfg luagen.Config
	flag.StringVar(&cfg.Lua, "lua", "lua", "folder of the scripts")
	flag.StringVar(&cfg.Out, "out", "lua_gen.go", "Go file to write")
	flag.StringVar(&cfg.Package, "package", os.Getenv("GOPACKAGE"), "package of the Go file (default: the one go generate runs in)")
	flag.StringVar(&cfg.Keys, "keys", "github.com/xstreamq/xstreamq/internal/keys.Set", "struct type of the key names")
	flag.Parse()
	if err := luagen.Write(cfg); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
