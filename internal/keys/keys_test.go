package keys

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	t.Parallel()
	want := Set{
		Queue:    "app:{orders}",
		Delayed:  "app:{orders}.delayed",
		Source:   "app:{orders}",
		Retry:    "app:{orders}.billing.retry",
		DLQ:      "app:{orders}.billing.dlq",
		Backoff:  "app:{orders}.billing.delayed",
		Done:     "app:{orders}.billing.done",
		Lock:     "app:{orders}:lock:reclaim:billing",
		Registry: "app:xstreamq:registry",
	}
	got := ForGroup("app:", "orders", "billing")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ForGroup: -want +got:\n%s", diff)
	}

	want.Source, want.Lock = "app:{orders}.billing.retry", "app:{orders}:lock:reclaim-retry:billing"
	if diff := cmp.Diff(want, got.OnRetry("billing")); diff != "" {
		t.Errorf("OnRetry: -want +got:\n%s", diff)
	}
	if got.Source != "app:{orders}" {
		t.Error("OnRetry changed the set it was called on")
	}

	want = Set{Queue: "{orders}", Delayed: "{orders}.delayed", Registry: "xstreamq:registry"}
	if diff := cmp.Diff(want, ForQueue("", "orders")); diff != "" {
		t.Errorf("ForQueue: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"billing-retry", "orders/billing", "app:xstreamq:health", "app:{orders}:migrated"},
		[]string{RetryGroup("billing"), Member("orders", "billing"), Health("app:"), Migrated("app:", "orders")}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// place is what tells one key from another.
type place struct{ kind, prefix, queue, group string }

// places returns every key of a group and what it stands for.
func places(prefix, queue, group string) map[place]string {
	s := ForGroup(prefix, queue, group)
	r := s.OnRetry(group)
	of := func(kind string) place { return place{kind, prefix, queue, group} }
	return map[place]string{
		{"queue", prefix, queue, ""}:    s.Queue,
		{"delayed", prefix, queue, ""}:  s.Delayed,
		{"migrated", prefix, queue, ""}: Migrated(prefix, queue),
		{"registry", prefix, "", ""}:    s.Registry,
		{"health", prefix, "", ""}:      Health(prefix),
		of("retry"):                     s.Retry,
		of("dlq"):                       s.DLQ,
		of("backoff"):                   s.Backoff,
		of("done"):                      s.Done,
		of("lock"):                      s.Lock,
		of("retry lock"):                r.Lock,
	}
}

// names generates names that could be mistaken for a part of a key.
func names(least int) *rapid.Generator[string] {
	piece := rapid.SampledFrom([]string{
		"a", "b", ".", ":", "-", "@", "_", ".retry", ".dlq", ".delayed", ".done", "delayed", "retry", "-retry", "-retry:", ":lock:", "lock", "reclaim",
		":lock:reclaim:", "reclaim-retry", ":migrated", "migrated", "xstreamq:registry", "xstreamq", ":registry", ":health",
	})
	return rapid.Map(rapid.SliceOfN(piece, least, 4), func(pieces []string) string { return strings.Join(pieces, "") })
}

func TestNoTwoKeysCoincide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Few different names, so that two places differ in one of them alone.
		queues := rapid.SliceOfN(names(1), 2, 2).Draw(t, "queues")
		groups := rapid.SliceOfN(names(1), 3, 3).Draw(t, "groups")
		prefixes := rapid.SliceOfN(names(0), 2, 2).Draw(t, "prefixes")
		owner := map[string]place{}
		for _, prefix := range prefixes {
			for _, queue := range slices.Concat(queues, groups) {
				for _, group := range slices.Concat(groups, queues) {
					for p, key := range places(prefix, queue, group) {
						if other, taken := owner[key]; taken && other != p {
							t.Fatalf("%q is the key of %+v and of %+v", key, p, other)
						}
						owner[key] = p
					}
				}
			}
		}
	})
}

func TestMembersOfTheRegistryDiffer(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := names(1).Draw(t, "a"), names(1).Draw(t, "b"), names(1).Draw(t, "c")
		for _, sign := range "_.:@-" {
			if one, two := Member(a, b+string(sign)+c), Member(a+string(sign)+b, c); one == two {
				t.Fatalf("%q is of two groups", one)
			}
		}
	})
}

// slot is the slot of a key in a cluster, by the rules of its specification.
func slot(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	var crc uint16
	for _, c := range []byte(key) {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc % 16384
}

func TestKeysOfAQueueShareASlot(t *testing.T) {
	t.Parallel()
	if got := slot("123456789"); got != 0x31C3%16384 {
		t.Fatalf("slot is wrong: %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		prefix, queue, group := names(0).Draw(t, "prefix"), names(1).Draw(t, "queue"), names(1).Draw(t, "group")
		for p, key := range places(prefix, queue, group) {
			if p.queue != "" && slot(key) != slot(queue) {
				t.Fatalf("%q is in slot %d, the queue in %d", key, slot(key), slot(queue))
			}
		}
	})
}

func TestBad(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		in   string
		want []string // parts of the answer; none = the name is good
	}{
		{"plain", "orders", nil},
		{"every sign that is allowed", "AZaz09_.:@-", nil},
		{"as long as may be", strings.Repeat("x", MaxName), nil},
		{"one longer", strings.Repeat("x", MaxName+1), []string{"longer than 160"}},
		{"far longer", strings.Repeat("x", 1<<20), []string{"longer than 160"}},
		{"opening brace", "a{b", []string{"'{'", "position 2"}},
		{"closing brace", "}", []string{"'}'", "position 1"}},
		{"newline", "orders\n", []string{`'\n'`, "position 7"}},
		{"space", "my orders", []string{"' '", "position 3"}},
		{"tab", "a\t", []string{`'\t'`}},
		{"slash", "a/b", []string{"'/'"}},
		{"tilde, which ends a consumer's name", "a~1", []string{"'~'"}},
		{"glob", "a*", []string{"'*'"}},
		{"bracket", "[a]", []string{"'['"}},
		{"NUL", "a\x00", []string{`'\x00'`}},
		{"beyond ASCII", "caf\u00e9", []string{"'\u00e9'", "position 4"}},
		{"a letter that looks like another", "\u0430", []string{"'\u0430'"}},
		{"not UTF-8", "a\xff", []string{"position 2"}},
		{"escape", "a\x1b[2J", []string{`'\x1b'`}},
	}
	for _, c := range cases {
		got := Bad(c.in, MaxName)
		if (got == "") != (c.want == nil) {
			t.Errorf("%s: %q", c.name, got)
		}
		for _, part := range c.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q does not say %q", c.name, got, part)
			}
		}
	}
	if got := Bad(strings.Repeat("x", MaxPrefix+1), MaxPrefix); !strings.Contains(got, "64") {
		t.Errorf("a long prefix: %q", got)
	}
}

// A name is good exactly when it is made of the signs that are allowed.
func TestBadOfAnything(t *testing.T) {
	t.Parallel()
	const allowedSigns = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:@-"
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), names(0), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "name")
		foreign := slices.ContainsFunc([]byte(name), func(c byte) bool { return !strings.ContainsRune(allowedSigns, rune(c)) })
		if bad := Bad(name, MaxName) != ""; bad != (foreign || len(name) > MaxName) {
			t.Fatalf("Bad(%q) = %q", name, Bad(name, MaxName))
		}
	})
}
