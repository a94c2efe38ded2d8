package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis/mock"

	"github.com/xstreamq/xstreamq"
)

// What health and doctor make of one and the same group. The wants are parts of sentences; of doctor with level and check before
// them. None: nothing to say.
func TestGroupJudged(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	seen := func(ago time.Duration) *xstreamq.Registration {
		return &xstreamq.Registration{VisibilityTimeout: 30 * time.Second, LastSeen: now.Add(-ago)}
	}
	present := &xstreamq.Group{Present: true}
	pending := func(idle, lease time.Duration) *pendingState {
		return &pendingState{xstreamq.PendingMessage{ID: "1-0", From: xstreamq.InQueue, Idle: idle}, lease}
	}
	for _, c := range []struct {
		name   string
		state  groupState
		health []string
		doctor []string
	}{
		{"idle with workers", groupState{registration: seen(time.Second), stream: present, workers: 2}, nil, nil},
		{"idle without workers", groupState{registration: seen(time.Hour), stream: present}, nil, nil},
		{"at work", groupState{registration: seen(time.Second), stream: present, workers: 1, worst: pending(time.Second, 30*time.Second),
			depth: xstreamq.Depth{Backlog: 5, Pending: 1, Retry: 1}}, nil, nil},
		{"backlog, no worker", groupState{registration: seen(time.Hour), stream: present, depth: xstreamq.Depth{Backlog: 5}},
			[]string{"messages wait (5 not delivered yet) and no worker is alive"},
			[]string{"problem workers messages wait (5 not delivered yet) and no worker is alive, the last was seen 1h0m ago"}},
		{"retry, no worker", groupState{registration: seen(time.Hour), stream: present, depth: xstreamq.Depth{Retry: 1}},
			[]string{"1 to be retried"}, []string{"problem workers 1 to be retried"}},
		{"unknown backlog, no worker", groupState{registration: seen(time.Hour), stream: present, depth: xstreamq.Depth{Backlog: xstreamq.UnknownLag}},
			[]string{"unknown number"}, []string{"problem workers unknown number"}},
		{"abandoned, no worker", groupState{registration: seen(time.Hour), stream: present, abandoned: 3, forsaken: 3, depth: xstreamq.Depth{Pending: 3}},
			[]string{"3 held by workers that are gone"}, []string{"problem workers 3 held by workers that are gone"}},
		{"lease running, no worker", groupState{registration: seen(time.Hour), stream: present, worst: pending(20*time.Second, 30*time.Second),
			depth: xstreamq.Depth{Pending: 1}}, nil, nil},
		{"due retry, no worker", groupState{registration: seen(time.Hour), stream: present, backoffDue: now.Add(-time.Minute), depth: xstreamq.Depth{Backoff: 1}},
			[]string{"retries due since 1m0s"}, []string{"problem workers retries due since 1m0s"}},
		{"due delayed message, no worker", groupState{registration: seen(time.Hour), stream: present, delayedDue: now.Add(-time.Minute),
			depth: xstreamq.Depth{Delayed: 1}}, []string{"delayed ones due since 1m0s"}, []string{"problem workers delayed ones due since 1m0s"}},
		{"not due, no worker", groupState{registration: seen(time.Hour), stream: present, delayedDue: now.Add(time.Minute), backoffDue: now.Add(-time.Second),
			depth: xstreamq.Depth{Delayed: 1, Backoff: 1}}, nil, nil},
		{"due, and not promoted", groupState{registration: seen(time.Second), stream: present, workers: 1, delayedDue: now.Add(-time.Minute),
			depth: xstreamq.Depth{Delayed: 1}}, nil, []string{"problem due messages overdue by 1m0s"}},
		{"nobody takes over one", groupState{registration: seen(time.Second), stream: present, workers: 1, worst: pending(2*time.Minute, 30*time.Second),
			depth: xstreamq.Depth{Pending: 1}}, []string{"nobody takes over message 1-0, whose lease of 30s was not renewed for 2m0s"},
			[]string{"problem leases message 1-0"}},
		{"three leases", groupState{registration: seen(time.Second), stream: present, workers: 1, worst: pending(100*time.Second, 30*time.Second),
			depth: xstreamq.Depth{Pending: 1}}, nil, nil},
		{"no lease to run out", groupState{registration: seen(time.Second), stream: present, workers: 1, worst: pending(time.Hour, 0),
			depth: xstreamq.Depth{Pending: 1}}, nil, nil},
		{"nobody takes over many", groupState{registration: seen(time.Second), stream: present, workers: 1, abandoned: 9, forsaken: 7,
			depth: xstreamq.Depth{Pending: 9}}, []string{"nobody takes over 7 messages"}, []string{"problem leases 7 messages are held by workers that are gone"}},
		{"a worker without leases, at work", groupState{registration: &xstreamq.Registration{LastSeen: now.Add(-time.Minute)}, stream: present,
			depth: xstreamq.Depth{Backlog: 5, Pending: 1}}, nil, nil},
		{"a worker without leases, gone", groupState{registration: &xstreamq.Registration{LastSeen: now.Add(-time.Hour)}, stream: present,
			depth: xstreamq.Depth{Backlog: 5, Pending: 1}}, []string{"no worker is alive"}, []string{"problem workers no worker is alive"}},
		{"workers that do not read", groupState{registration: seen(time.Second), stream: present, workers: 2, progress: still,
			depth: xstreamq.Depth{Backlog: 5, Oldest: time.Minute}},
			[]string{"messages wait for 1m0s (5 not delivered yet) and its 2 live workers do not read them"},
			[]string{"problem workers its 2 live workers do not read them"}},
		{"no worker was live, and then one read", groupState{registration: seen(time.Second), stream: present, progress: moving,
			depth: xstreamq.Depth{Backlog: 5, Oldest: time.Minute}}, nil, nil},
		{"a worker that was alive just now", groupState{registration: seen(time.Second), stream: present, progress: still,
			depth: xstreamq.Depth{Backlog: 5}}, []string{"no worker is alive"},
			[]string{"problem workers no worker is alive, the last was seen 1s ago"}},
		{"missing", groupState{registration: seen(time.Hour), missing: true, stream: &xstreamq.Group{Registered: true}},
			[]string{"its consumer group is missing from the stream p{q}"}, []string{"problem presence missing from the stream p{q}"}},
		{"missing with its stream", groupState{registration: seen(time.Hour), missing: true}, []string{"missing"}, []string{"problem presence missing"}},
		{"its queue was not asked", groupState{registration: seen(time.Hour)}, nil, nil},
		{"not registered", groupState{stream: present}, nil, []string{"note presence not registered"}},
		{"not seen for long", groupState{registration: seen(100 * time.Hour), stream: present}, nil, []string{"note registry no worker was seen for 4d4h"}},
		{"unreadable row", groupState{registration: &xstreamq.Registration{}, stream: present}, nil, []string{"note registry cannot be read"}},
		{"long pending list", groupState{registration: seen(time.Second), stream: present, workers: 1, depth: xstreamq.Depth{Pending: 20_000}},
			nil, []string{"warning pending 20000"}},
		{"a dead letter", groupState{registration: seen(time.Second), stream: present, workers: 1, depth: xstreamq.Depth{Dead: 1},
			deeper: deeper{deadSince: now.Add(-time.Hour), deadLately: 0}}, nil, []string{"note dead letters 1 dead letter, the oldest of 1h0m ago, 0 of the last hour"}},
		{"many dead letters", groupState{registration: seen(time.Second), stream: present, workers: 1, depth: xstreamq.Depth{Dead: 5000},
			deeper: deeper{deadLately: deadMany}}, nil, []string{"warning dead letters at least 1000 of the last hour"}},
		{"too many dead letters", groupState{registration: seen(time.Second), stream: present, workers: 1, depth: xstreamq.Depth{Dead: 5_000_000},
			deeper: deeper{deadLately: -1}}, nil, []string{"warning dead letters too many to count those of the last hour"}},
		{"wrong type", groupState{err: errors.New("key p{q}.g.dlq: WRONGTYPE Operation")}, []string{"p{q}.g.dlq"}, []string{"problem type p{q}.g.dlq"}},
		{"no permission", groupState{err: fmt.Errorf("key p{q}: %w", mock.Result(mock.RedisError("NOPERM this user")).Error())}, []string{"NOPERM"}, []string{"note permissions NOPERM"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.state
			s.queue, s.group = "q", "g"
			got := s.problems("p", now)
			if !slices.EqualFunc(got, c.health, strings.Contains) {
				t.Errorf("health says %q, want %q", got, c.health)
			}
			a := &app{}
			a.conn.prefix = "p"
			compareFindings(t, a.checkGroup(&s, now), c.doctor)
			if h := a.groupHealth(&s, now); (h.State == "unhealthy") != (len(c.health) > 0) {
				t.Errorf("the state is %s", h.State)
			}
		})
	}
}

// Of the groups of a queue the one that keeps most from being trimmed is named, if it has done so for long.
func TestHoldUp(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	group := func(name string, ago time.Duration, length int64) *groupState {
		s := &groupState{queue: "q", group: name, depth: xstreamq.Depth{Length: length, Backlog: 1}}
		if ago > 0 {
			s.unfinished = now.Add(-ago)
		}
		return s
	}
	for _, c := range []struct {
		name   string
		groups []*groupState
		want   string // the group
	}{
		{"all have finished", []*groupState{group("a", 0, 5000), group("b", 0, 5000)}, ""},
		{"one is behind", []*groupState{group("a", 0, 5000), group("b", 3*time.Hour, 5000), group("c", 2*time.Hour, 5000)}, "b"},
		{"not for long", []*groupState{group("b", time.Minute, 5000)}, ""},
		{"not much", []*groupState{group("b", 3*time.Hour, 50)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := checkHoldUp(&queueState{queue: "q", groups: c.groups}, now)
			switch {
			case c.want == "" && len(got) == 0:
			case len(got) == 1 && got[0].Level == levelWarning && *got[0].Group == c.want && strings.Contains(got[0].Seen, "3h0m ago"):
			default:
				t.Errorf("found %+v, want group %q", got, c.want)
			}
		})
	}
}

// What a group does in between two looks is progress when it reads or settles, and not when somebody publishes.
func TestProgress(t *testing.T) {
	t.Parallel()
	first := groupState{stream: &xstreamq.Group{Delivered: "5-0", Unfinished: "4-0"}, depth: xstreamq.Depth{Length: 9, Backlog: 4, Pending: 1}}
	for _, c := range []struct {
		name   string
		stream xstreamq.Group
		depth  xstreamq.Depth
		want   string
	}{
		{"nothing", *first.stream, first.depth, still},
		{"only published", *first.stream, xstreamq.Depth{Length: 12, Backlog: 7, Pending: 1, Delayed: 3}, still},
		{"backlog not known", *first.stream, xstreamq.Depth{Length: 12, Backlog: xstreamq.UnknownLag, Pending: 1}, still},
		{"read", xstreamq.Group{Delivered: "6-0", Unfinished: "4-0"}, first.depth, moving},
		{"settled", xstreamq.Group{Delivered: "5-0", Unfinished: "5-0"}, first.depth, moving},
		{"backlog falls", *first.stream, xstreamq.Depth{Length: 9, Backlog: 3, Pending: 1}, moving},
		{"failed", *first.stream, xstreamq.Depth{Length: 9, Backlog: 4, Backoff: 1}, moving},
	} {
		s := first
		if s.compare(&c.stream, c.depth); s.progress != c.want {
			t.Errorf("%s: %s, want %s", c.name, s.progress, c.want)
		}
	}
}
