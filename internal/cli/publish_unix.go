//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// inputClosed reports that there was no standard input when the program began: Go's runtime then opens the null device in its
// place, for reading and writing. Whoever means an empty input gives it for reading.
func inputClosed(stream any) bool {
	file, ok := fileOf(stream)
	if !ok || file.Fd() != 0 {
		return false
	}
	flags, err := unix.FcntlInt(0, unix.F_GETFL, 0)
	if err != nil {
		return true
	}
	is, err := file.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(is, null) && flags&unix.O_ACCMODE == unix.O_RDWR
}
