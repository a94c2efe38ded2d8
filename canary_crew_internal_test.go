package xstreamq

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// A canary that nobody works on fails after the grace, however long its timeout is, and not while a worker is alive.
func TestCanaryWithoutWorker(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, before, want string }{
		{"no group", "", "no worker of the group is alive"},
		{"no consumer", "XGROUP CREATE @queue g 0 MKSTREAM", "no worker of the group is alive"},
		{"a worker", "XGROUP CREATE @queue g 0 MKSTREAM\nXGROUP CREATECONSUMER @queue g w~30000", "not finished"},
		{"on the retry stream", "XGROUP CREATE @retry g-retry 0 MKSTREAM\nXGROUP CREATECONSUMER @retry g-retry w~30000", "not finished"},
	}
	for i, s := range scriptServers(t) {
		for j, c := range cases {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				e, v := s.env(t, i*len(cases)+j)
				v.do("XADD @retry 9-1 body a oid 1-0\n"+c.before, e.now)
				w := newCanary(&Client{redis: e.redis, cfg: Config{KeyPrefix: v.prefix}}, "q", "g", wire.ID{})
				w.add("1-0", "1-1")
				w.crew.grace = 50 * time.Millisecond
				timeout := time.Hour
				if c.want == "not finished" {
					timeout = time.Second
				}
				err := w.watch(t.Context(), timeout)
				if !errors.Is(err, ErrCanary) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "1 of its 1 messages") {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
			})
		}
	}
}

// The grace begins anew whenever a worker may be alive.
func TestCanaryCrew(t *testing.T) {
	t.Parallel()
	var found []Consumer
	c := crew{grace: time.Hour, consumers: func(context.Context) ([]Consumer, error) { return found, nil }}
	steps := []struct {
		found []Consumer
		gone  bool
	}{
		{nil, false}, // the first look begins the grace
		{nil, true},
		{[]Consumer{{Name: "a~30000", Live: true}}, false},
		{[]Consumer{{Name: "a~30000"}}, true},
		{[]Consumer{{Name: "a~30000"}, {Name: "b~0"}}, false}, // busy, for all that is known
	}
	for i, step := range steps {
		found = step.found
		if i > 0 {
			c.seen = c.seen.Add(-2 * c.grace)
		}
		if gone, err := c.gone(t.Context()); err != nil || gone != step.gone {
			t.Errorf("step %d: gone %v, %v", i, gone, err)
		}
	}
}
