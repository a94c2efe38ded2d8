package demo

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// TestAccount checks that the check finds each way in which a message can go missing.
func TestAccount(t *testing.T) {
	t.Parallel()
	g := group{name: "g", flaky: "release", poison: "org_block"}
	published := map[string]string{"1-0": "push", "2-0": "org_block", "3-0": foreign}
	failed, undecodable := xstreamq.Failed, xstreamq.Undecodable
	for name, test := range map[string]struct {
		handled []string
		left    remains
		want    []string
	}{
		"all is well": {
			handled: []string{"1-0"},
			left:    remains{dead: dead("2-0", failed, "3-0", undecodable)},
		},
		"lost": {
			left: remains{dead: dead("2-0", failed, "3-0", undecodable)},
			want: []string{"g: 1-0 (push) is lost: neither handled nor a dead letter"},
		},
		"in two places": {
			handled: []string{"1-0"},
			left:    remains{dead: dead("1-0", failed, "2-0", failed, "3-0", undecodable)},
			want:    []string{"g: 1-0 (push) was handled and is a dead letter too"},
		},
		"dead twice": {
			handled: []string{"1-0"},
			left:    remains{dead: dead("2-0", failed, "2-0", failed, "3-0", undecodable)},
			want:    []string{"g: 2-0 (org_block) is 2 dead letters"},
		},
		"dead for no reason": {
			left: remains{dead: dead("1-0", xstreamq.LostLease, "2-0", failed, "3-0", undecodable)},
			want: []string{"g: 1-0 (push) is a dead letter, lost-lease; it should be: handled"},
		},
		"dead for another reason": {
			handled: []string{"1-0"},
			left:    remains{dead: dead("2-0", undecodable, "3-0", undecodable)},
			want:    []string{"g: 2-0 (org_block) is a dead letter, undecodable; it should be: failed"},
		},
		"handled though it cannot be": {
			handled: []string{"1-0", "3-0"},
			left:    remains{dead: dead("2-0", failed)},
			want:    []string{"g: 3-0 (foreign) was handled; it should be a dead letter, undecodable"},
		},
		"from nowhere": {
			handled: []string{"1-0"},
			left:    remains{dead: dead("2-0", failed, "3-0", undecodable, "4-0", failed)},
			want:    []string{"g: dead letter 4-0 was never published"},
		},
		"left over": {
			handled: []string{"1-0"},
			left: remains{
				undelivered: true, pending: 1, retrying: 2, waiting: 3, delayed: 4,
				dead: dead("2-0", failed, "3-0", undecodable),
			},
			want: []string{
				"g: the queue holds messages that were not delivered", "g: 1 messages are pending",
				"g: 2 messages are in the retry stream", "g: 3 messages wait for their backoff", "g: 4 messages are delayed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			done := counts{handled: map[string]time.Time{}}
			for _, id := range test.handled {
				done.handled[id] = time.Now()
			}
			if diff := cmp.Diff(test.want, account(g, published, done, test.left)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func dead(idsAndReasons ...any) map[string][]xstreamq.Reason {
	letters := map[string][]xstreamq.Reason{}
	for i := 0; i < len(idsAndReasons); i += 2 {
		id := idsAndReasons[i].(string)
		letters[id] = append(letters[id], idsAndReasons[i+1].(xstreamq.Reason))
	}
	return letters
}

// TestReadRemains puts something into each place where a message can be, on both kinds of server. The key names are those of
// the contract, written out.
func TestReadRemains(t *testing.T) {
	t.Parallel()
	server, err := startEmbedded()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	prefix := redistest.Prefix(t)
	for name, rc := range map[string]rueidis.Client{
		"redis":    redistest.Client(t),
		"embedded": redistest.Dial(t, server.url()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := func(want remains) {
				t.Helper()
				got, err := readRemains(t.Context(), rc, prefix, "g")
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got, cmp.AllowUnexported(remains{})); diff != "" {
					t.Errorf("remains (-want +got):\n%s", diff)
				}
			}
			q := prefix + "{github-webhooks}"
			commands(t, rc, "XGROUP CREATE "+q+" g 0 MKSTREAM", "XGROUP CREATE "+q+".g.retry g-retry 0 MKSTREAM")
			want := remains{dead: map[string][]xstreamq.Reason{}}
			read(want)

			commands(t, rc, "XADD "+q+" 1-0 body x", "XADD "+q+" 2-0 body x")
			want.undelivered = true
			read(want)
			commands(t, rc, "XREADGROUP GROUP g c COUNT 1 STREAMS "+q+" >")
			want.pending = 1
			read(want)
			commands(t, rc, "XREADGROUP GROUP g c COUNT 1 STREAMS "+q+" >", "XACK "+q+" g 1-0 2-0")
			want.undelivered, want.pending = false, 0
			read(want)

			commands(t, rc,
				"XADD "+q+".g.retry 5-0 body x oid 1-0", "XADD "+q+".g.retry 6-0 body x oid 2-0",
				"XREADGROUP GROUP g-retry c COUNT 1 STREAMS "+q+".g.retry >",
				"ZADD "+q+".g.delayed 1 a 2 b 3 c", "ZADD "+q+".delayed 1 a 2 b 3 c 4 d",
				"XADD "+q+".g.dlq 7-0 body x oid 3-0 reason failed", "XADD "+q+".g.dlq 8-0 body x oid 3-0 reason no-body",
				// Another group's things are not this one's.
				"XADD "+q+".other.dlq 7-0 body x oid 3-0 reason failed", "ZADD "+q+".other.delayed 1 a",
			)
			want.pending, want.retrying, want.waiting, want.delayed = 1, 2, 3, 4
			want.dead = dead("3-0", xstreamq.Failed, "3-0", xstreamq.NoBody)
			read(want)
		})
	}
}

func commands(t *testing.T, rc rueidis.Client, lines ...string) {
	t.Helper()
	for _, line := range lines {
		words := strings.Fields(line)
		if err := rc.Do(t.Context(), rc.B().Arbitrary(words...).Build()).Error(); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// TestGroupMissing checks that a group which is not there is not taken for one with nothing to do.
func TestGroupMissing(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rc := redistest.Client(t)
	if _, err := readRemains(t.Context(), rc, prefix, "g"); err == nil {
		t.Error("no error without the queue")
	}
	commands(t, rc, "XGROUP CREATE "+prefix+"{github-webhooks} g 0 MKSTREAM")
	if _, err := readRemains(t.Context(), rc, prefix, "g"); err == nil {
		t.Error("no error without the retry stream")
	}
}

// TestRemoveKeys checks that all keys under the prefix go, and no others.
func TestRemoveKeys(t *testing.T) {
	t.Parallel()
	prefix := redistest.Prefix(t)
	rc := redistest.Client(t)
	commands(t, rc, "SET "+prefix+"mine:a 1", "SET "+prefix+"mine:{b} 1", "ZADD "+prefix+"mine:c 1 m", "SET "+prefix+"other 1")
	if err := removeKeys(t.Context(), rc, prefix+"mine:"); err != nil {
		t.Fatal(err)
	}
	left, err := keysUnder(t.Context(), rc, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{prefix + "other"}, left); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

func keysUnder(ctx context.Context, rc rueidis.Client, prefix string) ([]string, error) {
	return rc.Do(ctx, rc.B().Keys().Pattern(prefix+"*").Build()).AsStrSlice()
}
