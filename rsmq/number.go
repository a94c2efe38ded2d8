package rsmq

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// ofSeconds is a stored time. What is too long for a Duration is the longest there is.
func ofSeconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}

// What the scripts get for a time: milliseconds, or one of these.
const (
	asQueueSays = -1
	outOfRange  = -2 // which is an error only if the queue exists
)

// span is a time that may be absent.
func span(d *time.Duration) int64 {
	switch {
	case d == nil:
		return asQueueSays
	case checkTime("", d) != nil:
		return outOfRange
	}
	return milliseconds(*d)
}

// milliseconds of a time. Part of a millisecond counts as a whole one.
func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

// shortReply is an answer of a script that is not what it should be.
type shortReply struct {
	script string
	items  int
}

func (e *shortReply) Error() string {
	return fmt.Sprintf("rsmq: the script %s answered with %d items", e.script, e.items)
}
