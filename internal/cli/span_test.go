package cli

import (
	"testing"
	"time"
)

func TestSpanReadsDaysAndRefusesWhatIsNotAboveZero(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "12h": 12 * time.Hour, "7d": 7 * 24 * time.Hour, "1d12h30m": 36*time.Hour + 30*time.Minute, "1500ms": 1500 * time.Millisecond,
	} {
		var s span
		if err := s.Set(text); err != nil || time.Duration(s) != want {
			t.Errorf("%q is %s, %v; want %s", text, time.Duration(s), err, want)
		}
	}
	for _, text := range []string{"", "0", "0s", "0d", "-1h", "1d-2h", "d", "-1d", "7 d", "1.5d", "7days", "65536d", "soon", "1d1d"} {
		var s span
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %s, want an error", text, time.Duration(s))
		}
	}
}
