package wire

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestDecodeMember(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		id     string
		fields []string
		ours   bool
		want   Entry
	}{
		{
			name: "a delayed publish", id: "d9-ff", fields: []string{"body", "a", "h:k", "v", "oid", "d9-ff", "pub", "5"},
			want: Entry{Original: "d9-ff", Body: []byte("a"), HasBody: true, Header: map[string]string{"k": "v"}, Published: time.UnixMilli(5)},
		},
		{
			name: "a failed message", id: "3-0", ours: true, fields: []string{"body", "a", "oid", "3-0", "rc", "2", "lc", "1", "err", "boom"},
			want: Entry{Original: "3-0", Body: []byte("a"), HasBody: true, Failures: 2, Lost: 1, Error: "boom", Published: time.UnixMilli(3)},
		},
		{
			name: "a stranger's counters", id: "3-0", fields: []string{"body", "a", "oid", "4-0", "rc", "2"},
			want: Entry{Original: "3-0", Body: []byte("a"), HasBody: true, Published: time.UnixMilli(3)},
		},
		{
			name: "the first of a name counts", id: "3-0", fields: []string{"body", "a", "body", "b", "h:k", "1", "h:k", "2"},
			want: Entry{Original: "3-0", Body: []byte("a"), HasBody: true, Header: map[string]string{"k": "1"}, Published: time.UnixMilli(3)},
		},
		{name: "an empty body", id: "3-0", fields: []string{"body", ""}, want: Entry{Original: "3-0", HasBody: true, Published: time.UnixMilli(3)}},
		{name: "no fields", id: "x", want: Entry{Original: "x"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.want.ID = c.id
			got := Entry{Failures: 9, Error: "old", Body: []byte("old"), HasBody: true}
			err := got.DecodeMember(c.id+"\x00"+Pack(c.fields), c.ours)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
			if c.want.HasBody && got.Body == nil {
				t.Error("an empty body passes for none")
			}
		})
	}
}

// A member and an entry of the same fields are the same message.
func TestDecodeMemberAsEntry(t *testing.T) {
	t.Parallel()
	name := rapid.SampledFrom([]string{"body", "h:k", "h:", "oid", "pub", "rc", "lc", "err", "reason", "at", "from", "by", "xq:packed", "more"})
	value := rapid.SampledFrom([]string{"", "a", "7", "9-1", "d9-ff", "-1", "3:h:a1:b", "\xff"})
	rapid.Check(t, func(t *rapid.T) {
		var fields []string
		for range rapid.IntRange(0, 8).Draw(t, "fields") {
			fields = append(fields, name.Draw(t, "name"), value.Draw(t, "value"))
		}
		id, ours := value.Draw(t, "id"), rapid.Bool().Draw(t, "ours")
		var want, got Entry
		want.Decode(id, entryOf(fields...), ours)
		err := got.DecodeMember(id+"\x00"+Pack(fields), ours)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Fatalf("%v, -entry +member:\n%s", err, diff)
		}
	})
}

func TestDecodeMemberRefuses(t *testing.T) {
	t.Parallel()
	for member, id := range map[string]string{"": "", "x": "x", "x\x004:body": "x", "\x004:bo": "", "a\x00b\x00": "a"} {
		got := Entry{Failures: 9, HasBody: true}
		err := got.DecodeMember(member, true)
		if diff := cmp.Diff(Entry{ID: id}, got); diff != "" || !errors.Is(err, errPacked) {
			t.Errorf("%q: %v, -want +got:\n%s", member, err, diff)
		}
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]time.Time{
		"1796061062123-5":        time.UnixMilli(1796061062123),
		"d1796061062123-ff":      time.UnixMilli(1796061062123),
		"":                       {},
		"x":                      {},
		"d-ff":                   {},
		"d5-zz":                  {},
		"18446744073709551615-0": {},
	} {
		if got := Since(id); !got.Equal(want) {
			t.Errorf("Since(%q) is %v, want %v", id, got, want)
		}
	}
}
