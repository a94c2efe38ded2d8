// Package luagen turns a folder of Lua scripts into one Go file: for each
// script its source, the SHA1 of that source and one typed function that runs it.
//
// A script states its keys, arguments and results in a comment block at its
// top, and the generator refuses a script whose code and header disagree:
//
//	-- fail: writes a failed delivery forward and ends it where it was.
//	--
//	-- Any number of lines of prose.
//	--
//	-- KEYS 1 Source      stream the delivery was read from
//	-- ARGV 1 group string   consumer group of Source
//	-- ARGV 2... ids strings entries to end
//	-- RETURNS 0 Gone     not ours any more, nothing changed
//	-- INCLUDE move
//
// The first line is "name: purpose." with the file's own name. Then come, in any
// order, the declarations; a line indented by two or more spaces continues the
// one above it.
//
//   - KEYS n Name doc: Name is a string field of the keys struct, so a name that
//     does not exist there does not compile.
//   - ARGV n name type doc: type is string, bytes (sent without a copy), int
//     (int64, decimal) or bool ("1" or "0"). The last argument may be
//     "ARGV n... name strings doc", which takes all the rest.
//   - RETURNS code Name doc: an integer reply, emitted as a constant. A script
//     that replies otherwise describes it with "RETURNS - text".
//   - INCLUDE name: puts include/name.lua before the code, once. An include has
//     the same header, but only INCLUDE lines in it.
//   - IDEMPOTENT: running the script twice does what running it once does. Then
//     rueidis sends it again by itself, until ctx ends, when a connection breaks
//     before the reply came or the server answers LOADING (not if the client was
//     made with DisableRetry). Without the line such an error reaches the caller,
//     who does not know then whether the script ran. Either way the script is
//     called by its SHA1 first, and sent in full to a server that answers NOSCRIPT.
//
// Scripts are Lua 5.1 as every supported server has it; allowedGlobals lists
// what they may use. Comments and blank lines are not sent to the server.
package luagen

import (
	"bytes"
	"fmt"
	"os"
	"slices"
)

// Config names what to read and what to write. All fields are required.
type Config struct {
	// Lua is the folder of the scripts; its includes are in Lua/include.
	Lua string
	// Out is the Go file to write.
	Out string
	// Package is the name of the package Out belongs to.
	Package string
	// Keys is the struct type that holds the key names, as "import/path.Type",
	// or "Type" for one of Package itself. The last element of the path must be
	// the name of its package.
	Keys string
}

// Generate returns the Go source for the scripts of cfg. Its error lists every
// problem found, each as "file:line: text".
func Generate(cfg Config) ([]byte, error) {
	if cfg.Lua == "" || cfg.Package == "" || cfg.Keys == "" {
		return nil, fmt.Errorf("luagen: Lua, Package and Keys are required, got %+v", cfg)
	}
	var found problems
	scripts, err := load(cfg.Lua, &found)
	if err != nil {
		return nil, err
	}
	for _, s := range readable(scripts, &found) {
		check(s, &found)
	}
	checkNames(scripts, &found)
	if err := found.err(); err != nil {
		return nil, err
	}
	return emit(cfg, scripts)
}

// readable leaves out the scripts with a problem in one of their files, since
// checking them would only repeat it.
func readable(scripts []*script, found *problems) []*script {
	return slices.DeleteFunc(slices.Clone(scripts), func(s *script) bool {
		return found.in(s.file) || slices.ContainsFunc(s.includes, func(inc *source) bool { return found.in(inc.file) })
	})
}

// Write generates and writes cfg.Out. On an error Out is left as it was.
func Write(cfg Config) error {
	src, err := Generate(cfg)
	if err != nil {
		return err
	}
	if err := os.WriteFile(cfg.Out, src, 0o644); err != nil {
		return fmt.Errorf("luagen: write the generated file: %w", err)
	}
	return nil
}

// Fresh returns an error when cfg.Out is not what Generate makes of the scripts now.
func Fresh(cfg Config) error {
	want, err := Generate(cfg)
	if err != nil {
		return err
	}
	got, err := os.ReadFile(cfg.Out)
	if err != nil {
		return fmt.Errorf("luagen: read the generated file (run go generate ./...): %w", err)
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("luagen: %s is not what %s makes: run go generate ./... and commit the result", cfg.Out, cfg.Lua)
	}
	return nil
}
