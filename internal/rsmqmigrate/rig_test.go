package rsmqmigrate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
	"github.com/xstreamq/xstreamq/rsmq"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(processEnv); url != "" {
		os.Exit(moverProcess(url))
	}
	redistest.Main(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

// rig is an RSMQ queue and a queue of xstreamq, both of this test alone.
type rig struct {
	t     *testing.T
	redis rueidis.Client
	q     Queues
	from  *rsmq.Client
	m     *mover
}

// newRig makes the queues; apart moves as if they were in different slots.
func newRig(t *testing.T, rc rueidis.Client, apart bool) *rig {
	t.Helper()
	prefix := redistest.Prefix(t)
	return rigOf(t, rc, Queues{Namespace: prefix + "rsmq", Name: "from", Prefix: prefix, To: "to"}, apart)
}

func rigOf(t *testing.T, rc rueidis.Client, q Queues, apart bool) *rig {
	t.Helper()
	from, err := rsmq.New(rc, rsmq.Config{Namespace: q.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMover(rc, q)
	if err != nil {
		t.Fatal(err)
	}
	m.apart = m.apart || apart
	if err := from.CreateQueue(t.Context(), q.Name, rsmq.QueueOptions{VisibilityTimeout: rsmq.Seconds(600)}); err != nil {
		t.Fatal(err)
	}
	return &rig{t, rc, q, from, m}
}

// bothWays runs a test where the queues are in one slot, and where they are not.
func bothWays(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	for name, apart := range map[string]bool{"one slot": false, "two slots": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newRig(t, redistest.Client(t), apart))
		})
	}
}

// move moves as Move does.
func (r *rig) move() Counts {
	r.t.Helper()
	c, err := r.m.move(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func (r *rig) send(delay time.Duration, bodies ...string) []string {
	r.t.Helper()
	ids, err := r.from.SendMessages(r.t.Context(), r.q.Name, bodies, rsmq.SendOptions{Delay: &delay})
	if err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// many sends n messages that are visible.
func (r *rig) many(n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprint("body ", i)
	}
	return r.send(0, bodies...)
}

// receive receives messages, and hides them for so long.
func (r *rig) receive(n int, vt time.Duration) []rsmq.Message {
	r.t.Helper()
	ms, err := r.from.ReceiveMessages(r.t.Context(), r.q.Name, n, rsmq.ReceiveOptions{VisibilityTimeout: &vt, Wait: 10 * time.Second})
	if err != nil || len(ms) != n {
		r.t.Fatalf("received %d of %d: %v", len(ms), n, err)
	}
	return ms
}

func (r *rig) do(words ...string) rueidis.RedisResult {
	r.t.Helper()
	result := r.redis.Do(r.t.Context(), r.redis.B().Arbitrary(words[0]).Keys(words[1]).Args(words[2:]...).Build())
	if err := result.Error(); err != nil && !rueidis.IsRedisNil(err) {
		r.t.Fatalf("%q: %v", words, err)
	}
	return result
}

// moved is a message where it was moved to. Due is 0 on the stream.
type moved struct {
	RSMQ, Body, RC, Sent string
	Due                  int64
}

// arrived are all messages of the stream, in order, and then those that are delayed.
func (r *rig) arrived() []moved {
	r.t.Helper()
	var all []moved
	entries, err := r.do("XRANGE", r.m.keys.Queue, "-", "+").ToArray()
	if err != nil && !rueidis.IsRedisNil(err) {
		r.t.Fatal(err)
	}
	for _, entry := range entries {
		parts, err := entry.ToArray()
		if err != nil {
			r.t.Fatal(err)
		}
		fields, err := parts[1].AsStrSlice()
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, messageOf(r.t, fields, 0))
	}
	members, err := r.do("ZRANGE", r.m.keys.Delayed, "0", "-1", "WITHSCORES").AsZScores()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, m := range members {
		id, fields, err := wire.SplitMember(m.Member)
		due := int64(m.Score)
		if err != nil || !wire.Scheduled(id) || len(id) > 64 || !strings.HasPrefix(id, fmt.Sprintf("d%d-", due)) {
			r.t.Errorf("delayed member %q: %v", m.Member, err)
		}
		n := len(fields)
		if n < 4 || fields[n-4] != wire.Original || fields[n-3] != id || fields[n-2] != wire.Publish {
			r.t.Errorf("delayed fields %q", fields)
			continue
		}
		all = append(all, messageOf(r.t, fields[:n-4], due))
	}
	return all
}

func messageOf(t *testing.T, fields []string, due int64) moved {
	t.Helper()
	m := moved{Due: due}
	for i := 0; i+1 < len(fields); i += 2 {
		switch fields[i] {
		case wire.Body:
			m.Body = fields[i+1]
		case "h:rsmq-id":
			m.RSMQ = fields[i+1]
		case "h:rsmq-rc":
			m.RC = fields[i+1]
		case "h:rsmq-sent":
			m.Sent = fields[i+1]
		default:
			t.Errorf("field %q", fields[i])
		}
	}
	return m
}

// once checks that the messages arrived, each once, whatever the order.
func (r *rig) once(ids []string) {
	r.t.Helper()
	var got []string
	for _, m := range r.arrived() {
		got = append(got, m.RSMQ)
	}
	slices.Sort(got)
	if diff := cmp.Diff(slices.Sorted(slices.Values(ids)), got); diff != "" {
		r.t.Errorf("arrived (-want +got):\n%s", diff)
	}
}

// left is the queue that was moved: how many messages it has, and how many fields besides the queue's own.
func (r *rig) left() (messages, fields int) {
	r.t.Helper()
	n, err := r.do("ZCARD", r.m.keys.Messages).AsInt64()
	if err != nil {
		r.t.Fatal(err)
	}
	names, err := r.do("HKEYS", r.m.keys.Hash).AsStrSlice()
	if err != nil {
		r.t.Fatal(err)
	}
	own := []string{"vt", "delay", "maxsize", "created", "modified", "totalsent", "totalrecv"}
	return int(n), len(slices.DeleteFunc(names, func(name string) bool { return slices.Contains(own, name) }))
}
