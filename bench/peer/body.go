package peer

import (
	"fmt"
	"strconv"
	"time"
)

const (
	// BodySize is that of every message, in bytes: a time of 19 digits, a blank, a sequence number of 9, and padding.
	BodySize = 128

	timeDigits = 19
	seqDigits  = 9
	seqAt      = timeDigits + 1
)

// Body returns the message with this sequence number.
func Body(at time.Time, seq int) []byte {
	body := make([]byte, BodySize)
	putDigits(body[:timeDigits], at.UnixNano())
	body[timeDigits] = ' '
	putDigits(body[seqAt:seqAt+seqDigits], int64(seq))
	for i := seqAt + seqDigits; i < BodySize; i++ {
		body[i] = 'x'
	}
	return body
}

func putDigits(to []byte, n int64) {
	for i := len(to) - 1; i >= 0; i-- {
		to[i] = byte('0' + n%10)
		n /= 10
	}
}

// ParseBody reads what Body wrote.
func ParseBody[T string | []byte](body T) (nanos int64, seq int, err error) {
	if len(body) != BodySize {
		return 0, 0, fmt.Errorf("a body of %d bytes came, not of %d", len(body), BodySize)
	}
	if nanos, err = strconv.ParseInt(string(body[:timeDigits]), 10, 64); err != nil {
		return 0, 0, fmt.Errorf("the time of a body: %w", err)
	}
	if seq, err = strconv.Atoi(string(body[seqAt : seqAt+seqDigits])); err != nil {
		return 0, 0, fmt.Errorf("the sequence number of a body: %w", err)
	}
	return nanos, seq, nil
}
