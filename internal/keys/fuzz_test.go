package keys

import (
	"testing"
)

// No two places of two queues and groups share a key, and no queue's key lies outside of its slot, for all names that are let through.
func FuzzKeysDiffer(f *testing.F) {
	f.Add("", "orders", "shipping", "", "orders", "shipping.retry")
	f.Add("p:", "a.b", "c", "p:", "a", "b.c")
	f.Add("", "q", "g", "", "q", "g-retry")
	f.Add("x", "q", "reclaim:g", "x", "q", "g")
	f.Add("xstreamq:registry", "q", "g", "", "q", "g")
	f.Fuzz(func(t *testing.T, prefix1, queue1, group1, prefix2, queue2, group2 string) {
		for _, name := range []string{queue1, group1, queue2, group2} {
			if name == "" || Bad(name, MaxName) != "" {
				t.Skip("no name")
			}
		}
		if Bad(prefix1, MaxPrefix) != "" || Bad(prefix2, MaxPrefix) != "" {
			t.Skip("no prefix")
		}
		owner := map[string]place{}
		for _, of := range [][3]string{{prefix1, queue1, group1}, {prefix2, queue2, group2}, {prefix1, queue2, group1}} {
			for p, key := range places(of[0], of[1], of[2]) {
				if other, taken := owner[key]; taken && other != p {
					t.Errorf("%q is the key of %+v and of %+v", key, p, other)
				}
				owner[key] = p
			}
			s := ForGroup(of[0], of[1], of[2])
			for _, key := range []string{s.Delayed, s.Source, s.Retry, s.DLQ, s.Backoff, s.Done, s.Lock, s.OnRetry(of[2]).Lock} {
				if slot(key) != slot(s.Queue) {
					t.Errorf("%q lies in another slot than %q", key, s.Queue)
				}
			}
		}
	})
}

// What is no name is refused whatever it is, and the refusal can be shown.
func FuzzBad(f *testing.F) {
	f.Add("orders")
	f.Add("a}b")
	f.Add("\xff\x00")
	f.Add("é")
	f.Fuzz(func(t *testing.T, name string) {
		why := Bad(name, MaxName)
		for i := range len(name) {
			c := name[i]
			plain := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' ||
				c == '_' || c == '.' || c == ':' || c == '@' || c == '-'
			if !plain && why == "" {
				t.Fatalf("%q is taken for a name", name)
			}
		}
		for _, r := range why {
			if r < ' ' || r == 0x7f {
				t.Errorf("the refusal of %q has control characters: %q", name, why)
			}
		}
		if len(name) > MaxName && why == "" {
			t.Errorf("a name of %d characters is taken", len(name))
		}
	})
}
