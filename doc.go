// Package xstreamq is a queue.
package xstreamq

//go:generate go run ./internal/luagen/cmd -lua lua -out lua_gen.go -package xstreamq
