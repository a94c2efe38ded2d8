package wire

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestPack(t *testing.T) {
	t.Parallel()
	cases := []struct {
		fields []string
		want   string
	}{
		{nil, ""},
		{[]string{"body", "a"}, "4:body1:a"},
		{[]string{"", ""}, "0:0:"},
		{[]string{"1:", ":"}, "2:1:1::"},
		{[]string{"body", "\x00\xff\r\n", "caf\u00e9", "1"}, "4:body4:\x00\xff\r\n5:caf\u00e91:1"},
		{[]string{"x", "1", "x", "2"}, "1:x1:11:x1:2"},
	}
	for _, c := range cases {
		if got := Pack(c.fields); got != c.want {
			t.Errorf("Pack(%q) = %q, want %q", c.fields, got, c.want)
		}
		got, err := Unpack(c.want)
		if diff := cmp.Diff(c.fields, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("Unpack(%q): %v, -want +got:\n%s", c.want, err, diff)
		}
	}
}

func TestPackRoundTrip(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.SliceOf(text).Draw(t, "fields")
		fields = fields[:len(fields)/2*2]
		got, err := Unpack(Pack(fields))
		if err != nil || !slices.Equal(got, fields) {
			t.Fatalf("%q, %v", got, err)
		}
	})
}

// badPacked is what no writer of packed entries writes.
var badPacked = []string{
	"x", ":", "1", "1:", "1:a", "4:body", "4:body1", "4:body1:", "4:body2:a", "4:body1:a1:b", "-1:a", "+1:a1:b", "1e1:a", "0x1:a", " 1:a1:b",
	"99999999999999999999:a", "18446744073709551615:a", "9223372036854775807:a", "4:body1:a ", "1.5:a", "\x00:a",
}

func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range badPacked {
		if fields, err := Unpack(s); !errors.Is(err, errPacked) || fields != nil {
			t.Errorf("Unpack(%q) = %q, %v", s, fields, err)
		}
	}
	if _, err := Unpack("1:a1:b5:c"); err == nil || !strings.Contains(err.Error(), "field 2") {
		t.Errorf("the error does not say where: %v", err)
	}
}

func TestSplitMember(t *testing.T) {
	t.Parallel()
	id, fields, err := SplitMember("d5-ff\x004:body3:a\x00b")
	if err != nil || id != "d5-ff" || !slices.Equal(fields, []string{"body", "a\x00b"}) {
		t.Errorf("%q, %q, %v", id, fields, err)
	}
	if id, fields, err = SplitMember("1-0\x00"); err != nil || id != "1-0" || len(fields) != 0 {
		t.Errorf("without fields: %q, %q, %v", id, fields, err)
	}
	for _, s := range []string{"", "d5-ff", "4:body1:a", "d5-ff\x004:body"} {
		if id, fields, err := SplitMember(s); !errors.Is(err, errPacked) {
			t.Errorf("SplitMember(%q) = %q, %q, %v", s, id, fields, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for _, s := range badPacked {
		f.Add(s)
	}
	f.Add("4:body1:a")
	f.Add("0:0:")
	f.Fuzz(func(t *testing.T, s string) {
		fields, err := Unpack(s)
		if err != nil {
			return
		}
		if len(fields)%2 != 0 {
			t.Errorf("%d strings", len(fields))
		}
		again, err := Unpack(Pack(fields))
		if err != nil || !slices.Equal(again, fields) {
			t.Errorf("%q became %q, %v", fields, again, err)
		}
	})
}
