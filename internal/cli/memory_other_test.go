//go:build !linux

package cli

// notePeak is for tests that run on Linux alone.
func notePeak() {}
