package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// Whatever a stranger puts into a delayed zset is read or refused, and what is read says the same as an entry of these fields.
func FuzzDecodeMember(f *testing.F) {
	f.Add("d5-ff\x004:body1:a", false)
	f.Add("d5-ff\x004:body1:a3:oid5:d5-ff3:pub1:7", true)
	f.Add("1-0\x004:body1:a2:rc1:22:lc1:13:err4:boom3:oid3:1-0", true)
	f.Add("\x009:xq:packed8:3:h:k1:v", true)
	f.Add("x\x004:body", false)
	f.Add("x", true)
	f.Fuzz(func(t *testing.T, member string, ours bool) {
		var got, want Entry
		err := got.DecodeMember(member, ours)
		id, fields, split := SplitMember(member)
		if (err == nil) != (split == nil) {
			t.Fatalf("%q: decoding says %v, splitting %v", member, err, split)
		}
		if err != nil {
			if before, _, _ := strings.Cut(member, "\x00"); got.ID != before || got.HasBody {
				t.Errorf("%q was refused, and left %+v", member, got)
			}
			return
		}
		want.Decode(id, entryOf(fields...), ours)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-entry +member):\n%s", member, diff)
		}
		if rest := Pack(fields); !strings.HasPrefix(member, id+"\x00") || len(rest) > len(member)-len(id)-1 {
			t.Errorf("%q of %d bytes is packed into %q", member, len(member), rest)
		}
	})
}

// An id that is read is written as the same id, and is between its neighbours.
func FuzzParseID(f *testing.F) {
	for _, s := range []string{"0-0", "1526919030474-55", "18446744073709551615-18446744073709551615", "007-00", "1-", "-1", "d1-ff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, ok := ParseID(s)
		if !ok {
			return
		}
		if again, ok := ParseID(id.String()); !ok || again != id {
			t.Errorf("%q reads %v, and again %v", s, id, again)
		}
		if next := id.Next(); next != id && (!id.Less(next) || next.Less(id)) {
			t.Errorf("%v is not before %v", id, next)
		}
		if Scheduled(s) {
			t.Errorf("%q is the id of an entry and of a delayed message", s)
		}
	})
}
