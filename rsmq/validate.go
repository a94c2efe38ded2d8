package rsmq

import (
	"time"
	"unicode/utf8"
)

// Limits of a queue.
const (
	// MaxTime is the longest visibility timeout and delay.
	MaxTime = 9999999 * time.Second
	// Unlimited is a MaxSize without a limit.
	Unlimited = -1

	minSize, maxSize = 1024, 65536
	idLength         = 32
	timeLength       = 10 // of an id: its time of sending
	maxName          = 160
)

func checkQueue(name string) error {
	switch {
	case name == "":
		return ErrMissingParameter
	case len(name) > maxName || !every(name, nameByte):
		return ErrInvalidFormat
	case name == reserved:
		return ErrReserved
	}
	return nil
}

func checkID(id string) error {
	switch {
	case id == "":
		return &Error{ErrMissingParameter.Name, "No id supplied"}
	case len(id) != idLength || !every(id, idByte):
		return &Error{ErrInvalidFormat.Name, "Invalid id format"}
	}
	return nil
}

func every(s string, is func(byte) bool) bool {
	for i := range len(s) {
		if !is(s[i]) {
			return false
		}
	}
	return true
}

func alphanumeric(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9'
}

func nameByte(b byte) bool { return alphanumeric(b) || b == '_' || b == '-' }
func idByte(b byte) bool   { return alphanumeric(b) || b == ':' }

// checkTime is for one that may be absent.
func checkTime(what string, d *time.Duration) error {
	if d != nil && (*d < 0 || *d > MaxTime) {
		return invalidValue(what, "0 and 9999999")
	}
	return nil
}

// checkWhole is for a time that a queue stores, in whole seconds.
func checkWhole(what string, d *time.Duration) error {
	if err := checkTime(what, d); err != nil || d == nil {
		return err
	}
	if *d%time.Second != 0 {
		return &Error{ErrInvalidValue.Name, what + " of a queue must be whole seconds"}
	}
	return nil
}

func checkSize(n *int) error {
	if n != nil && *n != Unlimited && (*n < minSize || *n > maxSize) {
		return invalidValue("maxsize", "1024 and 65536")
	}
	return nil
}

// units counts the UTF-16 code units of a body. ok is false if it is not valid UTF-8.
func units(body string) (n int, ok bool) {
	if !utf8.ValidString(body) {
		return 0, false
	}
	for _, r := range body {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n, true
}

// Duration returns a pointer to d, for options in which a time that is not set is another thing than 0.
func Duration(d time.Duration) *time.Duration { return &d }

// Seconds is Duration for whole seconds.
func Seconds(n int) *time.Duration { return Duration(time.Duration(n) * time.Second) }

// Size returns a pointer to n, for MaxSize.
func Size(n int) *int { return &n }
