package rsmq

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// integer is the number that a stored text begins with, as the Node package reads it: "1024.7" is 1024.
func integer(text string) (n int64, ok bool) {
	text = strings.TrimLeft(text, " \t\n\v\f\r")
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[end] == '-' || text[end] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	return n, err == nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// ofSeconds is a stored time. What is too long for a Duration is the longest there is.
func ofSeconds(n int64) time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}

// milliseconds of a time that may be absent: -1 then. Part of a millisecond counts as a whole one.
func milliseconds(d *time.Duration) int64 {
	if d == nil {
		return -1
	}
	return int64((*d + time.Millisecond - 1) / time.Millisecond)
}

// shortReply is an answer of a script that is not what it should be.
type shortReply struct {
	script string
	items  int
}

func (e *shortReply) Error() string {
	return fmt.Sprintf("rsmq: the script %s answered with %d items", e.script, e.items)
}
