package xstreamq

import (
	"testing"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// A search proves that a message is nowhere only while it reads ahead of the server's clock: what is due may have moved.
func TestCanarySearchIsSure(t *testing.T) {
	t.Parallel()
	const due, later = "ZADD @backoff %d \"5-%d\\x00\"", "ZADD @backoff $now+60%d \"6-%d\\x00\""
	cases := []struct {
		name, before string
		seen, sure   bool
	}{
		{"nothing anywhere", "", false, true},
		{"a long retry stream", times(1200, "XADD @retry %d-1 body a oid 7-%d"), false, true},
		{"as many due as one call reads", times(499, due), false, true},
		{"more that are due", times(600, due), false, false},
		{"many that are not due", times(600, later), false, true},
		{"some that are due, many that are not", times(300, due) + times(600, later), false, true},
		{"on the retry stream", "XADD @retry 9-1 body a oid 1-0" + "\n" + times(600, due), true, false},
		{"far back on the retry stream", times(1200, "XADD @retry %d-1 body a oid 7-%d") + "XADD @retry 9000-1 body a oid 1-0", true, true},
		{"in backoff, soon", times(600, due) + `ZADD @backoff 7 "1-0\x00"`, true, false},
		{"in backoff, far back", times(300, due) + times(600, later) + `ZADD @backoff $now+900000 "1-0\x00"`, true, true},
		{"only the other one", "XADD @retry 9-1 body a oid 2-0", false, true},
	}
	for _, s := range scriptServers(t) {
		for i, c := range cases {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				e, v := s.env(t, i)
				v.do(c.before, e.now)
				w := newCanary(&Client{redis: e.redis, cfg: Config{KeyPrefix: v.prefix}}, "q", "g", wire.ID{})
				w.add("1-0", "1-1")
				w.add("2-0", "1-1")
				seen, sure, err := w.search(t.Context())
				if err != nil || seen["1-0"] != c.seen || sure != c.sure {
					t.Errorf("seen %v, sure %v, %v", seen, sure, err)
				}
			})
		}
	}
}

// A search does not read again what it knows to be too old for what it looks for.
func TestCanarySearchGoesOn(t *testing.T) {
	t.Parallel()
	for i, s := range scriptServers(t) {
		e, v := s.env(t, i)
		v.do(times(20, "XADD @retry %d-1 body a oid %d-0")+`ZADD @backoff 7 "30-0\x00"`, e.now)
		w := newCanary(&Client{redis: e.redis, cfg: Config{KeyPrefix: v.prefix}}, "q", "g", wire.ID{})
		for _, id := range []string{"10-0", "30-0", "31-0"} {
			w.add(id, "1-1")
		}
		if _, _, err := w.search(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id, want := range map[string]wire.ID{"10-0": {Ms: 10, Seq: 1}, "30-0": {Ms: 20, Seq: 2}, "31-0": {Ms: 20, Seq: 2}} {
			if got := w.alive[id].since; got != want {
				t.Errorf("%s: %s is looked for from %s on, want %s", s.name, id, got, want)
			}
		}
		if first := w.first(); first != (wire.ID{Ms: 10, Seq: 1}) {
			t.Errorf("%s: the next search begins at %s", s.name, first)
		}
	}
}
