// Package repolint holds the tests that keep the rules of this repository: what
// may import what, how long a file and a function may be, that generated code is
// fresh, and that the documentation points at things which exist. It has no code
// of its own.
package repolint
