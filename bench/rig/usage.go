package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// usage is what a process has used so far.
type usage struct {
	cpu     time.Duration // in user and system mode
	peakRSS float64       // MiB
}

// clockTick is the unit of /proc/PID/stat: USER_HZ is 100 on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// readUsage reads /proc: rusage of a child would count the memory of its parent between fork and exec.
func readUsage(pid int) (usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return usage{}, err
	}
	cpu, err := parseStat(stat)
	if err != nil {
		return usage{}, err
	}
	rss, err := parseStatus(string(status))
	return usage{cpu, rss}, err
}

// parseStat returns utime and stime. The command name before them is in brackets, and may itself hold some.
func parseStat(stat []byte) (time.Duration, error) {
	const utime, stime = 11, 12 // behind the name
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= stime {
		return 0, fmt.Errorf("%d fields in /proc/PID/stat are too few", len(fields))
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err1, err2)
}

// parseStatus returns VmHWM in MiB.
func parseStatus(status string) (float64, error) {
	for line := range strings.Lines(status) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			return kib / 1024, err
		}
	}
	return 0, errors.New("no VmHWM in /proc/PID/status: it has ended")
}
