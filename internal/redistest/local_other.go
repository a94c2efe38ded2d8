//go:build !linux

package redistest

import "syscall"

// dieWithParent cannot be had here: a server outlives a test process that is killed.
func dieWithParent() *syscall.SysProcAttr { return nil }

// stopped takes the signal's word for it.
func stopped(int) bool { return true }
