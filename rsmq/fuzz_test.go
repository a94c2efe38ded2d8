package rsmq

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

var (
	nodeName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,160}\z`)
	nodeID   = regexp.MustCompile(`^[a-zA-Z0-9:]{32}\z`)
)

// Names, ids and lengths are judged as the Node package does it, and an id's time is read without a panic.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{"", "q", someID, someID + "\n", "a b", "\xff", "\ud7ff", "😀", strings.Repeat("x", 161), "QUEUES", "zzzzzzzzzzzz", "-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if ok := checkQueue(text) == nil; ok != (nodeName.MatchString(text) && text != reserved) {
			t.Errorf("name %q: %v", text, ok)
		}
		if ok := checkID(text) == nil; ok != nodeID.MatchString(text) {
			t.Errorf("id %q: %v", text, ok)
		}
		n, ok := units(text)
		if ok != utf8.ValidString(text) || ok && n != len(utf16.Encode([]rune(text))) {
			t.Errorf("%q has %d units, %v", text, n, ok)
		}
		if at := sentAt(text); !at.IsZero() && (at.Before(time.UnixMicro(0)) || at.After(sentAt("zzzzzzzzzz"))) {
			t.Errorf("%q was sent at %s", text, at)
		}
	})
}
