package xstreamq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// lagClient is a client with 5,000 entries in queue q, 1-0, 2-0, ..., and a group of unknown lag at 2500-0.
func lagClient(t *testing.T) (*Client, keys.Set, *snapshot) {
	t.Helper()
	c, err := New(redistest.Client(t), Config{KeyPrefix: redistest.Prefix(t)})
	if err != nil {
		t.Fatal(err)
	}
	v := newView(t, c.redis, c.cfg.KeyPrefix, "q", "g")
	v.do(times(5000, "XADD @queue %d-0 body a")+"XGROUP CREATE @queue g 2500-0", 0)
	k := keys.ForGroup(c.cfg.KeyPrefix, "q", "g")
	s, err := readSnapshot(runDepth(t.Context(), c.redis, k, depthArgs{Group: "g", RetryGroup: "g-retry"}).ToArray())
	if err != nil {
		t.Fatal(err)
	}
	return c, k, s
}

// A lag that would take too long to count is unknown; it is never 0.
func TestLagUnknown(t *testing.T) {
	t.Parallel()
	c, k, s := lagClient(t)
	for most, want := range map[int64]int64{10: UnknownLag, 3000: UnknownLag, 6000: 2500, lagMost: 2500} {
		n, changed, err := c.backlog(t.Context(), k, s, most)
		if n != want || changed || err != nil {
			t.Errorf("looking at %d: %d, %v, %v; want %d", most, n, changed, err, want)
		}
	}
}

// What is trimmed while it is counted makes no wrong number: delivered entries that go away are not needed, and when undelivered ones do, the
// count begins anew.
func TestLagCountedWhileTrimmed(t *testing.T) {
	t.Parallel()
	c, k, s := lagClient(t)
	v := newView(t, c.redis, c.cfg.KeyPrefix, "q", "g")

	v.do("XTRIM @queue MINID 2000-0", 0)
	if n, changed, err := c.backlog(t.Context(), k, s, lagMost); n != 2500 || changed || err != nil {
		t.Errorf("delivered ones trimmed: %d, %v, %v", n, changed, err)
	}
	v.do("XTRIM @queue MINID 3001-0", 0)
	if n, changed, err := c.backlog(t.Context(), k, s, lagMost); !changed || err != nil {
		t.Errorf("undelivered ones trimmed: %d, %v, %v", n, changed, err)
	}
	if n, err := c.Lag(t.Context(), "q", "g"); n != 2000 || err != nil {
		t.Errorf("asked again: %d, %v", n, err)
	}
}

// A count that is interrupted by a trim at any place is either right or begun anew.
func TestLagTrimmedBetweenPages(t *testing.T) {
	t.Parallel()
	c, k, s := lagClient(t)
	v := newView(t, c.redis, c.cfg.KeyPrefix, "q", "g")
	walk := tally{n: 1, at: s.undelivered, to: s.newest}
	if err := c.count(t.Context(), k, &walk, 100); err != nil || walk.n != 101 || walk.at != "2601-0" {
		t.Fatalf("%+v, %v", walk, err)
	}
	kept := walk
	v.do("XTRIM @queue MINID "+strings.TrimSuffix(walk.at, "-0")+"-0", 0)
	for !walk.done && !walk.broken {
		if err := c.count(t.Context(), k, &walk, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if walk.n != 2500 || walk.broken {
		t.Errorf("trimmed up to where it was: %+v", walk)
	}
	v.do("XTRIM @queue MINID "+strconv.Itoa(2602)+"-0", 0)
	if err := c.count(t.Context(), k, &kept, 100); err != nil || !kept.broken || kept.done {
		t.Errorf("trimmed beyond: %+v, %v", kept, err)
	}
}

// onCount is a client that does something before each call of the count script.
type onCount struct {
	rueidis.Client
	first func()
}

func (c onCount) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if slices.Contains(cmd.Commands(), countSHA) {
		c.first()
	}
	return c.Client.Do(ctx, cmd)
}

// A depth whose undelivered entries go away while they are counted is looked at anew as a whole; when they do so again and again, the backlog is unknown
// in the end.
func TestDepthLooksAgain(t *testing.T) {
	t.Parallel()
	for times, want := range map[int]Depth{
		0: {Length: 5000, Backlog: 2500},
		1: {Length: 4999, Backlog: 2499},
		2: {Length: 4998, Backlog: 2498},
		9: {Length: 4998, Backlog: UnknownLag},
	} {
		t.Run(strconv.Itoa(times), func(t *testing.T) {
			t.Parallel()
			c, _, _ := lagClient(t)
			v := newView(t, c.redis, c.cfg.KeyPrefix, "q", "g")
			calls := 0
			c.redis = onCount{c.redis, func() {
				if calls++; calls <= times {
					v.do(fmt.Sprintf("XDEL @queue %d-0", 2500+calls), 0) // from which it is about to count
				}
			}}
			got, err := c.Depth(t.Context(), "q", "g")
			if err != nil || got.Length != want.Length || got.Backlog != want.Backlog {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
