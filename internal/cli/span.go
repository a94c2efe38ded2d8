package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// span is a flag for a length of time above zero, which may begin with whole days: 90s, 12h, 7d, 1d12h.
type span time.Duration

func (s *span) String() string {
	if *s == 0 {
		return ""
	}
	return time.Duration(*s).String()
}

// Type is what help shows for the value.
func (s *span) Type() string { return "duration" }

// Set reads it from the command line.
func (s *span) Set(text string) error {
	d, err := parseSpan(text)
	if err != nil {
		return err
	}
	if d <= 0 {
		return errors.New("it must be above zero")
	}
	*s = span(d)
	return nil
}

func parseSpan(text string) (time.Duration, error) {
	const day = 24 * time.Hour
	whole, rest, ok := strings.Cut(text, "d")
	if !ok {
		whole, rest = "0", text
	}
	days, err := strconv.ParseUint(whole, 10, 16)
	if err != nil {
		return 0, errors.New("write it as 90s, 15m, 12h or 7d")
	}
	if rest == "" && ok {
		return time.Duration(days) * day, nil
	}
	d, err := time.ParseDuration(rest)
	switch total := time.Duration(days)*day + d; {
	case err != nil:
		return 0, errors.New("write it as 90s, 15m, 12h or 7d")
	case ok && d < 0 || d > 0 && total < d:
		return 0, errors.New("it is out of range")
	default:
		return total, nil
	}
}
