package wire

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/mock"
)

// entryOf is an entry as a client gets it: name, value, name, value.
func entryOf(words ...string) []rueidis.RedisMessage {
	fields := make([]rueidis.RedisMessage, len(words))
	for i, w := range words {
		fields[i] = mock.RedisBlobString(w)
	}
	return fields
}

func TestScheduled(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{
		"d1-ff":                           true,
		"d0-0":                            true,
		"d1796061062123-0123456789abcdef": true,
		"d1-" + strings.Repeat("f", 61):   true,
		"d1-" + strings.Repeat("f", 62):   false, // too long
		"":                                false,
		"d":                               false,
		"d-":                              false,
		"d1":                              false,
		"d1-":                             false,
		"d-ff":                            false,
		"1-0":                             false,
		"D1-ff":                           false,
		"d1-FF":                           false,
		"d1-fg":                           false,
		"d1-f-f":                          false,
		"d+1-ff":                          false,
		"d-1-ff":                          false,
		"d1.5-ff":                         false,
		"_d1-ff":                          false,
		"d1-ff\n":                         false,
		"d1-ff\x00":                       false,
		"d1-\u0661":                       false,
	}
	for id, want := range cases {
		if got := Scheduled(id); got != want {
			t.Errorf("Scheduled(%q) = %v", id, got)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	const packed = "1:x1:y3:h:k1:v"
	cases := []struct {
		name   string
		fields []string
		ours   bool
		want   Entry
	}{
		{
			name: "the least", fields: []string{"body", "a"},
			want: Entry{Original: "7-1", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(7)},
		},
		{
			name: "headers and bytes", fields: []string{"h:k", "v", "body", "\x00\xff", "h:", "\xff", "x", "y"},
			want: Entry{Original: "7-1", Body: []byte("\x00\xff"), HasBody: true, Header: map[string]string{"k": "v", "": "\xff"}, Published: time.UnixMilli(7)},
		},
		{name: "no body", fields: []string{"x", "y"}, want: Entry{Original: "7-1", Published: time.UnixMilli(7)}},
		{name: "an empty body", fields: []string{"body", ""}, want: Entry{Original: "7-1", Body: []byte{}, HasBody: true, Published: time.UnixMilli(7)}},
		{
			name: "the first of a name counts", fields: []string{"body", "a", "body", "b", "h:k", "", "h:k", "v"},
			want: Entry{Original: "7-1", Body: []byte("a"), HasBody: true, Header: map[string]string{"k": ""}, Published: time.UnixMilli(7)},
		},
		{
			name: "a stranger's names", fields: []string{"rc", "99", "lc", "98", "err", "e", "reason", "failed", "at", "5", "from", "1-1", "by", "me",
				"pub", "5", "oid", "1-1", "body", "a", "xq:packed", packed},
			want: Entry{Original: "7-1", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(7)},
		},
		{
			name: "a promoted message", fields: []string{"body", "a", "oid", "d9-ff", "pub", "5"},
			want: Entry{Original: "d9-ff", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(5)},
		},
		{
			name: "the publish time may come before the id", fields: []string{"pub", "5", "oid", "d9-ff", "body", "a"},
			want: Entry{Original: "d9-ff", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(5)},
		},
		{
			name: "a promoted message of unknown age", fields: []string{"body", "a", "oid", "d9-ff", "pub", "x"},
			want: Entry{Original: "d9-ff", Body: []byte("a"), HasBody: true},
		},
		{
			name: "a redelivery", fields: []string{"body", "a", "oid", "3-0", "rc", "2", "lc", "1", "err", "boom"}, ours: true,
			want: Entry{Original: "3-0", Body: []byte("a"), HasBody: true, Failures: 2, Lost: 1, Error: "boom", Published: time.UnixMilli(3)},
		},
		{
			name: "a dead letter", ours: true,
			fields: []string{"body", "a", "oid", "3-0", "rc", "4", "err", "boom", "reason", "failed", "at", "1000", "from", "5-0", "by", "w~500"},
			want: Entry{Original: "3-0", Body: []byte("a"), HasBody: true, Failures: 4, Error: "boom", Reason: "failed", At: time.UnixMilli(1000),
				From: "5-0", By: "w~500", Published: time.UnixMilli(3)},
		},
		{
			name: "what was packed on the way", fields: []string{"body", "a", "xq:packed", packed, "oid", "3-0"}, ours: true,
			want: Entry{Original: "3-0", Body: []byte("a"), HasBody: true, Header: map[string]string{"k": "v"}, Published: time.UnixMilli(3)},
		},
		{
			name: "nothing but headers is taken from there", ours: true,
			fields: []string{"oid", "3-0", "rc", "1", "lc", "2", "xq:packed", Pack([]string{
				"rc", "99", "lc", "98", "oid", "9-9", "pub", "5", "body", "a", "err", "e", "reason", "r", "xq:packed", "3:h:k1:v",
			})},
			want: Entry{Original: "3-0", Failures: 1, Lost: 2, Published: time.UnixMilli(3)},
		},
		{
			name: "packed, but not by us", fields: []string{"body", "a", "xq:packed", "3:h:k1:v1", "oid", "3-0"}, ours: true,
			want: Entry{Original: "3-0", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(3)},
		},
		{
			name: "counters that are none", fields: []string{"body", "a", "rc", "-1", "lc", "NaN", "at", "-5"}, ours: true,
			want: Entry{Original: "7-1", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(7)},
		},
		{name: "nothing", want: Entry{Original: "7-1", Published: time.UnixMilli(7)}},
		{name: "a name without value", fields: []string{"body"}, want: Entry{Original: "7-1", Published: time.UnixMilli(7)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.ID = "7-1"
			got := Entry{Failures: 9, Header: map[string]string{"left": "over"}, Error: "old", At: time.UnixMilli(1), Body: []byte("old"), HasBody: true}
			got.Decode("7-1", entryOf(c.fields...), c.ours)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What is no string, as no server sends it, is passed over.
func TestDecodeOfOtherTypes(t *testing.T) {
	t.Parallel()
	fields := []rueidis.RedisMessage{
		mock.RedisInt64(1), mock.RedisBlobString("x"),
		mock.RedisBlobString("body"), mock.RedisNil(),
		mock.RedisBlobString("h:k"), mock.RedisInt64(1),
		mock.RedisBlobString("body"), mock.RedisBlobString("a"),
	}
	var got Entry
	got.Decode("7-1", fields, true)
	want := Entry{ID: "7-1", Original: "7-1", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(7)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPublished(t *testing.T) {
	t.Parallel()
	cases := []struct {
		id, original, pub string
		want              time.Time
	}{
		{"1796061062123-5", "", "", time.UnixMilli(1796061062123)},
		{"9-0", "1796061062123-5", "", time.UnixMilli(1796061062123)},
		{"9-0", "1796061062123-5", "5", time.UnixMilli(1796061062123)}, // pub is for delayed ones
		{"9-0", "d99-ff", "1796061062123", time.UnixMilli(1796061062123)},
		{"9-0", "d99-ff", "", time.Time{}},
		{"9-0", "d99-ff", "0", time.Time{}},
		{"9-0", "d99-ff", "99999999999999999999", time.Time{}},
		{"9-0", "x", "5", time.Time{}},
		{"9007199254740993-0", "", "", time.Time{}}, // no time, but an id that somebody chose
		{"18446744073709551615-0", "", "", time.Time{}},
	}
	for _, c := range cases {
		fields := entryOf("body", "a", "pub", c.pub)
		if c.original != "" {
			fields = append(fields, entryOf("oid", c.original)...)
		}
		var e Entry
		e.Decode(c.id, fields, true)
		if !e.Published.Equal(c.want) {
			t.Errorf("%+v: published %v", c, e.Published)
		}
	}
	if year := publishedAt("9007199254740992-0", "").Year(); year < math.MaxInt16 {
		t.Errorf("the largest id that is a time is of year %d", year)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("7-1", "body", "a", "oid", "d9-ff", "pub", "5", true)
	f.Add("18446744073709551615-1", "rc", "1e400", "lc", "-1", "at", "9223372036854775807", true)
	f.Add("", "xq:packed", "3:h:k1:v", "h:", "\xff", "body", "\x00", false)
	f.Fuzz(func(t *testing.T, id, name1, value1, name2, value2, name3, value3 string, ours bool) {
		var e Entry
		e.Decode(id, entryOf(name1, value1, name2, value2, name3, value3), ours)
		if e.ID != id || e.Failures < 0 || e.Lost < 0 {
			t.Errorf("%+v", e)
		}
		if hasBody := name1 == Body || name2 == Body || name3 == Body; e.HasBody != hasBody {
			t.Errorf("HasBody is %v", e.HasBody)
		}
		if ours {
			return
		}
		if e.Failures != 0 || e.Lost != 0 || e.Error != "" || e.Reason != "" || e.From != "" || e.By != "" || !e.At.IsZero() {
			t.Errorf("a stranger is believed: %+v", e)
		}
		if e.Original != id && !Scheduled(e.Original) {
			t.Errorf("a stranger's id is believed: %q", e.Original)
		}
	})
}
