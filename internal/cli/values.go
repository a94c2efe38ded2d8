package cli

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/xstreamq/xstreamq"
)

// absent is the cell of a value that is not there.
const absent = "-"

// stamp is a time for --json: RFC 3339 in UTC, to the millisecond; null when it is not known.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return &s
}

// millis is a duration for --json; null when it is not above zero, which stands for none.
func millis(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// known is a count for --json: null when it could not be counted.
func known(n int64) *int64 {
	if n == xstreamq.UnknownLag {
		return nil
	}
	return &n
}

// count is a count for people.
func count(n int64) string {
	if n == xstreamq.UnknownLag {
		return "unknown"
	}
	return strconv.FormatInt(n, 10)
}

// short is a duration for people, in its two largest units.
func short(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// ago is how long ago something was, by this machine's clock.
func ago(t time.Time) string {
	if t.IsZero() {
		return absent
	}
	return short(time.Since(t))
}

// or is a text for people, with a mark where there is none.
func or(s string) string {
	if s == "" {
		return absent
	}
	return s
}

// exact is a text for --json that may hold any bytes: itself, or where it is not UTF-8 its bytes, for base64.
func exact(s string) (*string, []byte) {
	if utf8.ValidString(s) {
		return &s, nil
	}
	return nil, []byte(s)
}

// yes is a truth for people.
func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// preview is the beginning of a text, with a mark where it goes on. Zero = all of it.
func preview(s string, most int) string {
	if most <= 0 || len(s) <= most {
		return s
	}
	cut := most
	for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
