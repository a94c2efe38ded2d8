package xstreamq_test

import (
	"context"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// node is how many entries Redis keeps in one piece of a stream: trimming leaves up to that many more than it must.
const node = 100

// rapidly makes the compactor run all the time.
var rapidly = xstreamq.Config{CompactEvery: 2 * time.Millisecond}

// waitRounds waits until the loops of a name have made so many more rounds, in every group of the client.
func (r *foreignRig) waitRounds(loop string, rounds int) {
	r.t.Helper()
	progress := func() []time.Time {
		var at []time.Time
		for _, s := range r.client.Health(context.Background()).Subscriptions {
			for _, l := range s.Loops {
				if l.Name == loop {
					at = append(at, l.Progress)
				}
			}
		}
		return at
	}
	for range rounds {
		before := progress()
		redistest.WaitFor(r.t, foreignWait, "a round of the "+loop, func() bool {
			for i, at := range progress() {
				if at.Equal(before[i]) {
					return false
				}
			}
			return true
		})
	}
}

// fill publishes n messages, whose bodies count from 0, and returns their ids.
func (r *foreignRig) fill(n int) []string {
	r.t.Helper()
	batch := make([]xstreamq.Outgoing[[]byte], n)
	for i := range batch {
		batch[i].Body = strconv.AppendInt(nil, int64(i), 10)
	}
	ids := make([]string, n)
	for i, result := range r.queue.PublishBatch(context.Background(), batch) {
		if result.Err != nil {
			r.t.Fatal(result.Err)
		}
		ids[i] = result.ID
	}
	return ids
}

func succeed(context.Context, *xstreamq.Message[[]byte]) error { return nil }

// waitTrimmed waits until next to nothing is left of the queue.
func (r *foreignRig) waitTrimmed() {
	r.t.Helper()
	redistest.WaitFor(r.t, foreignWait, "the queue trimmed", func() bool { return r.len("") <= 2*node })
}

// checkKept fails when an entry from a position on was trimmed, or many more than a node's worth before it were kept.
func (r *foreignRig) checkKept(ids []string, from int) {
	r.t.Helper()
	kept := r.entries("")
	for _, e := range kept {
		if e.ID == ids[from] {
			if n := len(ids) - from; len(kept) > n+2*node {
				r.t.Errorf("%d entries are kept, of which only %d are needed", len(kept), n)
			}
			return
		}
	}
	r.t.Errorf("entry %d is not finished by every group, and gone", from)
}

// Compaction (P2): two groups, one of which lags: nothing goes that the slower one has not finished, and everything else does.
func TestCompactionWaitsForLaggingGroup(t *testing.T) {
	t.Parallel()
	const n, held = 2000, 1200
	r := newForeignRig(t, rapidly)
	var fast, slow atomic.Int64
	gate := newHeldGate()
	r.subscribe("fast", func(context.Context, *xstreamq.Message[[]byte]) error {
		fast.Add(1)
		return nil
	}, xstreamq.SubscribeOptions{})
	r.subscribe("slow", func(ctx context.Context, m *xstreamq.Message[[]byte]) error {
		if i := slow.Add(1); i == 1 || i == held+1 {
			return gate.handle(ctx, m)
		}
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 1, Prefetch: -1})
	ids := r.fill(n)
	r.start()

	gate.next(t)
	redistest.WaitFor(t, foreignWait, "the fast group is through", func() bool { return r.open("fast") == 0 })
	r.waitRounds("compactor", 5)
	if got := r.len(""); got != n {
		t.Errorf("%d entries are left of %d that the slow group has not finished", got, n)
	}

	gate.out <- nil
	gate.next(t)
	redistest.WaitFor(t, foreignWait, "what both groups finished is trimmed", func() bool { return r.len("") <= n-held+2*node })
	r.waitRounds("compactor", 5)
	r.checkKept(ids, held)

	gate.out <- nil
	r.waitEnded("slow")
	r.waitTrimmed()
	if fast.Load() != n || slow.Load() != n {
		t.Errorf("handled %d and %d, want %d each", fast.Load(), slow.Load(), n)
	}
}

// Compaction (P2): a group whose workers are all away loses nothing, and gets everything when they are back.
func TestCompactionWaitsForAbsentWorkers(t *testing.T) {
	t.Parallel()
	const n = 1000
	r := newForeignRig(t, rapidly)
	away := open(t, xstreamq.Config{KeyPrefix: r.prefix})
	q := foreignQueue(t, away, "q", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
	if _, err := q.Subscribe("away", succeed, xstreamq.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(away.Start(t.Context()), away.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	r.subscribe("g", succeed, xstreamq.SubscribeOptions{})
	r.start()
	r.fill(n)
	r.waitEnded("g")
	r.waitRounds("compactor", 5)
	if got := r.len(""); got != n {
		t.Errorf("%d entries are left, the absent group needs %d", got, n)
	}
	var back atomic.Int64
	r.subscribe("away", func(context.Context, *xstreamq.Message[[]byte]) error {
		back.Add(1)
		return nil
	}, xstreamq.SubscribeOptions{})
	r.waitEnded("away")
	r.waitTrimmed()
	if back.Load() != n {
		t.Errorf("the absent group got %d messages, want %d", back.Load(), n)
	}
}

// Compaction (P2): an entry that stays pending for ever, since its group has no leases, stops it there and keeps what follows.
func TestCompactionStopsAtStuckEntry(t *testing.T) {
	t.Parallel()
	const n, stuck = 1000, 650
	r := newForeignRig(t, rapidly)
	r.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		if string(m.Body) == strconv.Itoa(stuck) {
			return errors.New("stuck")
		}
		return nil
	}, xstreamq.SubscribeOptions{NoVisibilityTimeout: true})
	r.start()
	ids := r.fill(n)
	redistest.WaitFor(t, foreignWait, "all but the stuck message", func() bool { return r.open("g") == 1 })
	redistest.WaitFor(t, foreignWait, "what came before it is trimmed", func() bool { return r.len("") <= n-stuck+2*node })
	r.waitRounds("compactor", 5)
	r.checkKept(ids, stuck)
}

// Compaction (P2): while a registered group is missing from the stream nothing is trimmed, and when it is back it gets everything.
func TestCompactionWaitsForMissingGroup(t *testing.T) {
	t.Parallel()
	const n = 1000
	r := newForeignRig(t, rapidly)
	r.do("HSET", r.prefix+"xstreamq:registry", "q/missing", "{}")
	r.do("HSET", r.prefix+"xstreamq:registry", "qq/other", "{}") // of another queue
	r.subscribe("g", succeed, xstreamq.SubscribeOptions{})
	r.start()
	r.fill(n)
	r.waitEnded("g")
	r.waitRounds("compactor", 5)
	if got := r.len(""); got != n {
		t.Errorf("%d entries are left, the missing group needs %d", got, n)
	}
	var got atomic.Int64
	r.subscribe("missing", func(context.Context, *xstreamq.Message[[]byte]) error {
		got.Add(1)
		return nil
	}, xstreamq.SubscribeOptions{})
	r.waitEnded("missing")
	r.waitTrimmed()
	if got.Load() != n {
		t.Errorf("the missing group got %d messages, want %d", got.Load(), n)
	}
}

// Compaction (P2): a group that begins at the beginning while others are compacting gets everything from some message on, without a
// hole, and all that was published after it was ready.
func TestGroupBeginsDuringCompaction(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, rapidly)
	r.subscribe("g", succeed, xstreamq.SubscribeOptions{Concurrency: 20})
	r.start()
	next := 0
	publish := func() {
		batch := make([]xstreamq.Outgoing[[]byte], 150)
		for i := range batch {
			batch[i].Body = strconv.AppendInt(nil, int64(next), 10)
			next++
		}
		for _, result := range r.queue.PublishBatch(context.Background(), batch) {
			if result.Err != nil {
				t.Error(result.Err)
			}
		}
	}
	for range 15 {
		var mu sync.Mutex
		var got []int
		for range 4 {
			publish()
		}
		sub := r.subscribe("late", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
			i, err := strconv.Atoi(string(m.Body))
			mu.Lock()
			defer mu.Unlock()
			got = append(got, i)
			return err
		}, xstreamq.SubscribeOptions{})
		for ready := false; !ready; {
			publish()
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			ready = sub.Ready(ctx) == nil
			cancel()
		}
		since := next
		publish()
		r.waitEnded("late")
		if err := sub.Unsubscribe(t.Context()); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		if len(got) == 0 || got[0] > since || got[len(got)-1] != next-1 || len(got) != next-got[0] {
			t.Fatalf("ready before %d of %d, the group got %d messages from %d on", since, next, len(got), got[0])
		}
		r.do("XGROUP DESTROY", r.key(""), "late")
		r.do("HDEL", r.prefix+"xstreamq:registry", "q/late")
		r.waitTrimmed()
	}
}

// Retain keeps finished entries for its time, and negative for ever, however long either is.
func TestRetain(t *testing.T) {
	t.Parallel()
	const old, fresh = 500, 300
	for _, c := range []struct {
		name     string
		retain   time.Duration
		keepsOld bool
		keepsNew bool
	}{
		{name: "none", retain: 0},
		{name: "an hour", retain: time.Hour, keepsNew: true},
		{name: "longer than time is", retain: math.MaxInt64, keepsOld: true, keepsNew: true},
		{name: "for ever", retain: -1, keepsOld: true, keepsNew: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := rapidly
			cfg.Retain = c.retain
			r := newForeignRig(t, cfg)
			yesterday := r.serverNow().Add(-24 * time.Hour).UnixMilli()
			for i := range old {
				r.do("XADD", r.key(""), strconv.FormatInt(yesterday+int64(i), 10)+"-0", "body", "b")
			}
			ids := r.fill(fresh)
			r.subscribe("g", succeed, xstreamq.SubscribeOptions{VisibilityTimeout: 200 * time.Millisecond})
			r.start()
			r.waitEnded("g")
			switch {
			case !c.keepsNew:
				r.waitTrimmed()
			case !c.keepsOld:
				redistest.WaitFor(t, foreignWait, "the old ones trimmed", func() bool { return r.len("") <= fresh+2*node })
				r.waitRounds("compactor", 5)
				r.checkKept(ids, 0)
			default:
				r.waitRounds("sweeper", 5)
				if got := r.len(""); got != old+fresh {
					t.Errorf("%d entries are left of %d", got, old+fresh)
				}
			}
			if err := r.client.Healthy(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// CompactEvery negative: never.
func TestCompactEveryNegative(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{CompactEvery: -1})
	r.subscribe("g", succeed, xstreamq.SubscribeOptions{VisibilityTimeout: 200 * time.Millisecond})
	r.start()
	r.fill(1000)
	r.waitEnded("g")
	r.waitRounds("sweeper", 5)
	if got := r.len(""); got != 1000 {
		t.Errorf("%d entries are left of 1000", got)
	}
}

// Compaction: the memory of 200,000 published and acknowledged messages falls back to next to nothing.
func TestMemoryFallsBack(t *testing.T) {
	t.Parallel()
	const n = 200_000
	r := newForeignRig(t, xstreamq.Config{CompactEvery: 100 * time.Millisecond})
	var handled atomic.Int64
	r.subscribe("g", func(context.Context, *xstreamq.Message[[]byte]) error {
		handled.Add(1)
		return nil
	}, xstreamq.SubscribeOptions{Concurrency: 64, Prefetch: 512})
	for range n / 20_000 {
		r.fill(20_000)
	}
	usage := func() int64 {
		n, err := r.do("MEMORY USAGE", r.key(""), "SAMPLES", "0").AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	full := usage()
	r.start()
	r.waitEnded("g")
	r.waitTrimmed()
	r.stop()
	if got := usage(); got > 64<<10 || full < 1<<20 {
		t.Errorf("the stream took %d bytes full and %d empty", full, got)
	}
	if got := handled.Load(); got != n {
		t.Errorf("handled %d of %d", got, n)
	}
	for _, key := range []string{".g.retry", ".g.dlq", ".g.delayed", ".delayed"} {
		if n := r.len(key); n != 0 {
			t.Errorf("%d entries are left in %s", n, key)
		}
	}
}

// compactScript is the script as the engine sends it, for states that no running client can be in.
func compactScript(t *testing.T) string {
	t.Helper()
	var text []byte
	for _, name := range []string{"lua/include/base.lua", "lua/compact.lua"} {
		part, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, part...), '\n')
	}
	return string(text)
}

// Compaction (P2): without any group nothing is trimmed, and a queue that does not exist stays so.
func TestCompactionWithoutGroups(t *testing.T) {
	t.Parallel()
	r := newForeignRig(t, xstreamq.Config{})
	script := compactScript(t)
	compact := func() []rueidis.RedisMessage {
		cmd := r.redis.B().Eval().Script(script).Numkeys(1).Key(r.key("")).Arg("0").Build()
		reply, err := r.redis.Do(context.Background(), cmd).ToArray()
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	compact()
	if n, _ := r.do("EXISTS", r.key("")).AsInt64(); n != 0 {
		t.Error("compaction made the queue exist")
	}
	r.fill(1000)
	if none, err := compact()[2].AsInt64(); none != 1 || err != nil {
		t.Errorf("it does not say that there is no group: %v, %v", none, err)
	}
	if n := r.len(""); n != 1000 {
		t.Errorf("%d entries are left of 1000 that nobody has read", n)
	}
}

// Compaction works at maxmemory, also when all workers start anew on a server that is full of finished entries: they trim it, and
// publishing goes on.
func TestCompactionAtMaxmemory(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Args: []string{"--maxmemory", "12mb", "--maxmemory-policy", "noeviction"}})
	rig := func(cfg xstreamq.Config) *foreignRig {
		cfg.KeyPrefix = "full:"
		client, err := xstreamq.Open(server.URL(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		r := &foreignRig{t: t, prefix: "full:", name: "q", redis: redistest.Dial(t, server.URL()), client: client}
		r.queue = foreignQueue(t, client, "q", xstreamq.WithCodec[[]byte](xstreamq.Bytes{}))
		return r
	}
	old := rig(xstreamq.Config{CompactEvery: -1})
	old.subscribe("g", succeed, xstreamq.SubscribeOptions{Concurrency: 50})
	old.start()
	stored := fillUp(t, old.queue)
	old.waitEnded("g")
	old.stop()
	if n := old.len(""); n != stored {
		t.Fatalf("%d entries of %d are left before compaction", n, stored)
	}

	fresh := rig(rapidly)
	got := make(chan string, 10)
	fresh.subscribe("g", func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		got <- m.OriginalID
		return nil
	}, xstreamq.SubscribeOptions{})
	fresh.start()
	fresh.waitTrimmed()
	id := fresh.publish("there is room again")
	if d := foreignAwait(t, got); d != id {
		t.Errorf("handled %s, want %s", d, id)
	}
	if err := fresh.client.Healthy(t.Context()); err != nil {
		t.Error(err)
	}
}

// fillUp publishes until the server is full, and returns how many messages it took.
func fillUp(t *testing.T, q *xstreamq.Queue[[]byte]) (stored int64) {
	t.Helper()
	body := make([]byte, 1000)
	for {
		_, err := q.Publish(t.Context(), body)
		if err == nil {
			stored++
			continue
		}
		if !strings.Contains(err.Error(), "OOM") || errors.Is(err, xstreamq.ErrPublishUncertain) {
			t.Fatal(err)
		}
		return stored
	}
}
