package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// leastRoom is what a file system still has that could not take a write, at most.
const leastRoom = 64 << 10

// noRoom reports that a stream goes to a file on a full file system. Only a write would tell more, of a quota or a broken disk for
// one, and nothing of ours belongs in there.
func noRoom(stream any) bool {
	file, ok := fileOf(stream)
	if !ok {
		return false
	}
	is, err := file.Stat()
	if err != nil {
		return false
	}
	if full, err := os.Stat("/dev/full"); err == nil && os.SameFile(is, full) {
		return true
	}
	if !is.Mode().IsRegular() {
		return false
	}
	var about unix.Statfs_t
	if unix.Fstatfs(int(file.Fd()), &about) != nil {
		return false
	}
	left := about.Bavail
	if os.Geteuid() == 0 {
		left = about.Bfree // what is kept for root
	}
	return about.Blocks > 0 && left < leastRoom/uint64(about.Bsize)+1
}
