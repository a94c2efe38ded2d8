package xstreamq

import (
	"fmt"

	"github.com/redis/rueidis"
)

// replyReader reads the items of a script's reply one after the other; the first error stays.
type replyReader struct {
	reply []rueidis.RedisMessage
	err   error
}

func (r *replyReader) next() (m rueidis.RedisMessage, ok bool) {
	if r.err != nil {
		return m, false
	}
	if len(r.reply) == 0 {
		r.err = fmt.Errorf("xstreamq: a script's reply is too short")
		return m, false
	}
	m, r.reply = r.reply[0], r.reply[1:]
	return m, true
}

func (r *replyReader) int() (n int64) {
	if m, ok := r.next(); ok {
		n, r.err = m.AsInt64()
	}
	return n
}

func (r *replyReader) string() (s string) {
	if m, ok := r.next(); ok {
		s, r.err = m.ToString()
	}
	return s
}

func (r *replyReader) strings() (s []string) {
	if m, ok := r.next(); ok {
		s, r.err = m.AsStrSlice()
	}
	return s
}
